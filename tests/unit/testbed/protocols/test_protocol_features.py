"""Features of protocols; that they are what table I of `checkmate` prints is a check of `checkmate/table-1`."""

from __future__ import annotations

import pytest

from testbed.core.checkpoints import last_common
from testbed.protocols import by_name
from testbed.protocols.features import FEATURES, features

EMPTY = [
    ("coordinated", "blocking markers", {"on_marker": lambda self, frame: None}),
    ("coordinated", "straggler stalls", {"on_marker": lambda self, frame: None}),
    ("uncoordinated", "independent checkpoints", {"on_timer": lambda self: None}),
    ("uncoordinated", "unused checkpoints", {"find_line": staticmethod(last_common)}),
    ("communication-induced", "forced checkpoints", {"on_message": lambda self, frame: None}),
]


def changed(name: str, hooks: dict[str, object]) -> dict[str, bool]:
    return features(type("Changed", (by_name(name),), hooks))


@pytest.mark.parametrize(("name", "feature", "hook"), EMPTY, ids=[feature for _, feature, _ in EMPTY])
def test_a_hook_that_is_overridden_and_empty_makes_no_feature(name: str, feature: str, hook: dict[str, object]) -> None:
    assert features(by_name(name))[feature]
    assert not changed(name, hook)[feature]


def test_a_protocol_that_overrides_every_hook_with_nothing_has_no_feature() -> None:
    hooks: dict[str, object] = {hook: value for _, _, hooks in EMPTY for hook, value in hooks.items()}
    assert changed("none", hooks) == dict.fromkeys(FEATURES, False)


def test_an_empty_piggyback_is_no_overhead() -> None:
    assert not changed("uncoordinated", {"before_send": lambda self, channel: b""})["message overhead"]


def test_a_round_that_does_not_wait_stalls_for_nobody() -> None:
    assert not changed("coordinated", {"on_marker": lambda self, frame: self.runtime.checkpoint()})["straggler stalls"]


@pytest.mark.parametrize(
    ("name", "feature", "flag"),
    [("coordinated", "straggler stalls", "in_rounds"), ("uncoordinated", "independent checkpoints", "on_own_time")],
)
def test_what_the_class_does_not_ask_for_never_happens(name: str, feature: str, flag: str) -> None:
    assert not changed(name, {flag: False})[feature]


def test_without_a_protocol_there_is_no_feature() -> None:
    assert features(by_name("none")) == dict.fromkeys(FEATURES, False)
