"""A slot's store at work on what partitions keep for others."""

import pytest

from experiments.errors import EnvironmentFailure
from testbed.core.effects import Discard, Fetch, Spill
from testbed.runtime.slot.spilling import Spilling
from testbed.stores.store import MemoryStore

KEY = "a.0/sent-1-1"
SPILL = Spill(KEY, lambda: iter([b"con", b"tent"]))


class Slot:
    """A store that may refuse, a thread that works when it is told to, and what partition 3 hears."""

    def __init__(self):
        self.store, self.jobs, self.heard, self.lives = MemoryStore(), [], [], {3: object()}
        self.spilling = Spilling(self.store, self, self, self._hear)

    def submit(self, job, then):
        self.jobs.append((job, then))

    def life(self, number):
        return self.lives[number]

    def _hear(self, number, event, *arguments):
        assert number == 3
        self.heard.append((event.__name__, *arguments))

    def do(self, *effects):
        for effect in effects:
            self.spilling.do(3, effect)

    def work(self):
        while self.jobs:
            job, then = self.jobs.pop(0)
            then(job())


def refused(*_):
    raise EnvironmentFailure("no room", "wait")


def test_what_is_spilled_comes_back_and_is_deleted():
    slot = Slot()
    slot.do(SPILL, Fetch(KEY), Discard((KEY,)))
    slot.work()
    assert slot.heard == [("on_spilled", KEY), ("on_fetched", KEY, b"content")]
    assert not slot.store.keys()


def test_a_store_may_refuse_to_write_and_to_delete(monkeypatch):
    slot = Slot()
    monkeypatch.setattr(slot.store, "_write", refused)
    monkeypatch.setattr(slot.store, "delete", refused)
    slot.do(SPILL, Discard((KEY,)))
    slot.work()
    assert slot.heard == [("on_spill_refused", KEY)]


def test_what_is_spoilt_or_gone_is_told_as_such():
    slot = Slot()
    slot.do(SPILL, Fetch("a.0/sent-2-1"))
    slot.work()
    slot.store.objects[KEY] = slot.store.objects[KEY][:-1]
    slot.do(Fetch(KEY))
    slot.work()
    assert slot.heard == [("on_spilled", KEY), ("on_unreadable", "a.0/sent-2-1"), ("on_unreadable", KEY)]


def test_a_life_that_is_over_writes_nothing():
    slot = Slot()
    slot.do(SPILL)
    slot.lives[3] = object()
    slot.work()
    assert not slot.store.keys()


def test_a_store_that_cannot_be_asked_ends_the_slot(monkeypatch):
    slot = Slot()
    monkeypatch.setattr(slot.store, "_read", refused)
    slot.do(Fetch(KEY))
    with pytest.raises(EnvironmentFailure):
        slot.work()


@pytest.mark.parametrize("ends_while", ["it-waits", "it-is-read"])
def test_a_store_that_cannot_be_asked_ends_no_slot_whose_partition_needs_nothing_more(monkeypatch, ends_while):
    """Its session is over, say, and the slot has come again."""
    slot, reads = Slot(), []

    def read(key):
        reads.append(key)
        slot.lives[3] = object()
        refused()

    monkeypatch.setattr(slot.store, "_read", read)
    slot.do(Fetch(KEY))
    if ends_while == "it-waits":
        slot.lives[3] = object()
    slot.work()
    assert reads == ([] if ends_while == "it-waits" else [KEY])
    assert slot.heard == []


def test_what_is_written_when_its_life_is_over_is_deleted():
    slot = Slot()

    def hanging():
        yield b"content"
        slot.lives[3] = object()

    slot.do(Spill(KEY, hanging))
    slot.work()
    assert not slot.store.keys()
