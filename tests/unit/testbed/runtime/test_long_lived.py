"""State is searched for garbage while it is new, and not again before the session ends."""

import gc
import weakref

import pytest

from testbed.runtime.slot import long_lived
from testbed.runtime.slot.long_lived import SETTLE_S, LongLived


class Linked:
    """Refers to itself, so that only a search frees it."""

    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def nothing_settled():
    gc.unfreeze()
    gc.collect()
    yield
    gc.unfreeze()


def garbage():
    return weakref.ref(Linked())


def test_what_has_settled_is_not_searched_until_the_session_ends():
    objects, kept = LongLived(), Linked()
    objects.on_clock(0.0)
    watched = weakref.ref(kept)
    del kept
    gc.collect()
    assert watched() is not None
    objects.end()
    assert watched() is None


def test_new_garbage_does_not_settle():
    new = garbage()
    LongLived().on_clock(0.0)
    assert new() is None


def test_objects_settle_ten_times_a_second(monkeypatch):
    settled = []
    monkeypatch.setattr(long_lived, "settle", lambda: settled.append(None))
    objects = LongLived()
    for now_s in (0.0, 0.4 * SETTLE_S, SETTLE_S, 1.5 * SETTLE_S, 2.5 * SETTLE_S):
        objects.on_clock(now_s)
    assert len(settled) == 3
