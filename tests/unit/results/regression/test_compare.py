"""Which named runs can be compared."""

import pytest

from experiments.errors import BadInput
from results.regression.compare import against, side_by_side
from results.tables.schema import SCHEMA_VERSION
from tests.unit.results.regression.past import write_run

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize(
    "compare", [side_by_side, lambda names: against(names[:1], names[1:])], ids=["beside", "against"]
)
def test_tables_of_another_version_are_refused_with_the_remedy(compare):
    write_run("now", 1)
    write_run("before", 2, schema_version=SCHEMA_VERSION - 1)
    with pytest.raises(BadInput, match="`aftershock results recompute before` makes them so"):
        compare(["now", "before"])
