"""What the events of an oracle may be."""

import pytest

from workloads.checked_events import events


@pytest.mark.parametrize("other", ["price STRING", "kind LONG"])
def test_a_field_has_one_type_in_all_kinds(other):
    with pytest.raises(ValueError, match="in one kind of event and"):
        events(None, {"sale": "item LONG, price LONG", "offer": other})
