"""A hook that a protocol overrides with nothing makes no feature, although its class declares it."""

from __future__ import annotations

import pytest

from reproductions.checkmate.acting import seen
from testbed.core.checkpoints import last_common
from testbed.protocols import PROTOCOLS, by_name
from testbed.protocols.features import features

EMPTY = {
    "blocking markers": ("coordinated", "on_marker", lambda self, frame: None),
    "unused checkpoints": ("uncoordinated", "find_line", staticmethod(last_common)),
    "forced checkpoints": ("communication-induced", "on_message", lambda self, frame: None),
}


@pytest.mark.parametrize("feature", EMPTY)
def test_an_overridden_but_empty_hook_is_not_seen_to_act(feature: str) -> None:
    name, hook, nothing = EMPTY[feature]
    emptied = type("Emptied", (by_name(name),), {hook: nothing})
    assert features(emptied)[feature]
    assert seen(by_name(name))[feature]
    assert not seen(emptied)[feature]


@pytest.mark.parametrize(
    ("name", "feature", "hook"),
    [
        ("uncoordinated", "message overhead", {"before_send": lambda self, channel: b""}),
        ("uncoordinated", "independent checkpoints", {"on_timer": lambda self: None}),
        ("coordinated", "straggler stalls", {"on_marker": lambda self, frame: self.runtime.checkpoint()}),
    ],
)
def test_what_is_declared_is_seen_only_if_it_is_done(name: str, feature: str, hook: dict[str, object]) -> None:
    changed = type("Changed", (by_name(name),), hook)
    assert features(changed)[feature]
    assert not seen(changed)[feature]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_each_protocol_is_seen_to_do_what_it_declares(name: str) -> None:
    acts, declared = seen(by_name(name)), features(by_name(name))
    assert acts == {feature: declared[feature] for feature in acts}
