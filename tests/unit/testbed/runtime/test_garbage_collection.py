"""Objects that are no longer needed are deleted, from a store that refuses now and then."""

import threading

import pytest

from experiments.errors import EnvironmentFailure
from journal.reader import raw_entries
from journal.writer import Journal
from testbed.core.effects import Sweep, SweepCopy
from testbed.runtime.server import garbage_collection, store_watch
from testbed.runtime.server.garbage_collection import GarbageCollector
from testbed.runtime.server.store_watch import StoreWatch
from testbed.stores.store import DirectoryStore, MemoryStore


@pytest.mark.parametrize("foreign", [(), ("a.txt", "out.0/notes-last", "out.0/backup-1")])
def test_a_recovery_sweeps_away_what_earlier_epochs_left_whole_or_not(tmp_path, foreign):
    store = DirectoryStore(tmp_path / "store")
    for key in foreign:
        store.put(key, [b"not of this runtime"])
    for key in ("out.0/state-1-1", "out.0/state-2-1", "out.0/state-2-2", "out.0/sent-1-1", "out.0/waiting-1-1"):
        store.put(key, [b"content"])
    for name in (".7.state-3-1", ".8.state-3-2"):
        (tmp_path / "store" / "out.0" / name).write_bytes(b"cont")
    collector = GarbageCollector(store, Journal(tmp_path / "journal.jsonl"))
    collector.sweep(Sweep(2, frozenset({"out.0/state-1-1"}), frozenset({"out.0"})))
    collector.close()
    assert store.keys() == sorted(["out.0/.8.state-3-2", "out.0/state-1-1", "out.0/state-2-2", *foreign])


def test_a_partial_recovery_leaves_alone_what_survivors_wrote_in_earlier_epochs(tmp_path):
    store = MemoryStore()
    for key in ("out.0/state-1-1", "out.1/state-1-1", "in.0/state-1-2"):
        store.put(key, [b"content"])
    collector = GarbageCollector(store, Journal(tmp_path / "journal.jsonl"))
    for epoch, partition in ((2, "out.0"), (3, "in.0")):
        collector.sweep(Sweep(epoch, frozenset(), frozenset({partition})))
    collector.close()
    assert store.keys() == ["out.1/state-1-1"]


class Refusing(MemoryStore):
    """Refuses the first listing and the first delete."""

    def __init__(self):
        super().__init__()
        self._refusals = ["keys", "delete"]

    def keys(self, folder=""):
        self._refuse("keys")
        return super().keys(folder)

    def delete(self, key):
        self._refuse("delete")
        super().delete(key)

    def _refuse(self, what):
        if what in self._refusals:
            self._refusals.remove(what)
            raise EnvironmentFailure(f"{what} refused", "wait")


def test_what_a_store_does_not_list_or_delete_is_tried_again_and_told(tmp_path):
    store, journal = Refusing(), tmp_path / "journal.jsonl"
    for key in ("out.0/state-1-1", "out.0/state-2-1", "out.0/state-3-1", "out.0/state-4-2"):
        store.put(key, [b"content"])
    collector = GarbageCollector(store, Journal(journal))
    collector.sweep(Sweep(2, frozenset({"out.0/state-3-1"}), frozenset({"out.0"})))
    collector.delete(("out.0/state-1-1",))
    collector.delete(())
    collector.close()
    assert store.keys() == ["out.0/state-3-1", "out.0/state-4-2"]
    assert [each["error"] for each in raw_entries(journal)] == ["keys refused; wait", "delete refused; wait"]


class Keeping(MemoryStore):
    """Never deletes some objects."""

    def __init__(self, *kept):
        super().__init__()
        self.kept, self.asked = set(kept), []
        for number in range(6):
            self.put(f"out.0/state-{number}-1", [b"content"])

    def delete(self, key):
        self.asked.append(key)
        if key in self.kept:
            raise EnvironmentFailure(f"{key} refused", "wait")
        super().delete(key)


def test_an_object_that_can_never_be_deleted_blocks_nothing_behind_it(tmp_path):
    store, journal = Keeping("out.0/state-0-1"), tmp_path / "journal.jsonl"
    collector = GarbageCollector(store, Journal(journal))
    collector.delete(("out.0/state-0-1", "out.0/state-1-1"))
    collector.sweep(Sweep(2, frozenset({"out.0/state-5-1"}), frozenset({"out.0"})))
    collector.close()
    assert store.keys() == ["out.0/state-0-1", "out.0/state-5-1"]
    assert {each["error"] for each in raw_entries(journal)} == {"out.0/state-0-1 refused; wait"}
    assert store.asked.count("out.0/state-0-1") == 2, "once by each request"


def test_a_store_that_is_out_of_reach_is_not_asked_for_every_object_and_later_has_them_deleted(tmp_path):
    store = Keeping(*(f"out.0/state-{number}-1" for number in range(6)))
    collector = GarbageCollector(store, Journal(tmp_path / "journal.jsonl"))
    keys = tuple(store.keys())
    collector._clean(keys, None)
    assert store.asked == list(keys[:3])
    store.kept.clear()
    collector.delete(())
    collector.close()
    assert store.keys() == []


def test_sweeps_that_find_the_same_objects_again_ask_for_each_once(tmp_path):
    store = Keeping(*(f"out.0/state-{number}-1" for number in range(20)))
    for key in store.kept:
        store.put(key, [b"content"])
    keys, collector = store.keys(), GarbageCollector(store, Journal(tmp_path / "journal.jsonl"))
    for epoch in (2, 3, 4):
        collector._clean((), Sweep(epoch, frozenset(), frozenset({"out.0"})))
    store.kept.clear()
    store.asked.clear()
    collector.delete(())
    collector.close()
    assert (sorted(store.asked), store.keys()) == (keys, [])


class Hanging(MemoryStore):
    """Answers nothing until it may."""

    def __init__(self):
        super().__init__()
        self.may = threading.Event()

    def keys(self, folder=""):
        self.may.wait(60)
        return super().keys(folder)

    def delete(self, key):
        self.may.wait(60)
        super().delete(key)


@pytest.mark.parametrize("asked", ["delete", "sweep"])
def test_a_store_that_hangs_while_it_deletes_or_lists_is_told_of_before_the_end(tmp_path, monkeypatch, asked):
    monkeypatch.setattr(garbage_collection, "LOOK_S", 0.02)
    monkeypatch.setattr(store_watch, "SLOW_S", 0.05)
    store, journal = Hanging(), Journal(tmp_path / "journal.jsonl")
    store.put("out.0/state-1-1", [b"content"])
    collector = GarbageCollector(store, journal)
    watch = StoreWatch({}, journal, collector)
    if asked == "delete":
        collector.delete(("out.0/state-1-1",))
    else:
        collector.sweep(Sweep(2, frozenset(), frozenset({"out.0"})))

    def look():
        watch.look()
        if list(raw_entries(tmp_path / "journal.jsonl")):
            store.may.set()

    collector.close(look)
    (told,) = raw_entries(tmp_path / "journal.jsonl")
    assert (told["event"], told["worker"], told["seconds"] >= 0.05) == ("store-slow", store_watch.DRIVER, True)
    assert (collector.waited_s, store.objects) == (0.0, {})


def test_what_a_copy_has_spilled_is_left_when_it_is_promoted_and_not_what_its_primary_has(tmp_path):
    store = MemoryStore()
    for key in ("out.0/state-1-1", "out.0/sent-1-1", "out.0/sent-1-2", "in.0/sent-1-2"):
        store.put(key, [b"content"])
    collector = GarbageCollector(store, Journal(tmp_path / "journal.jsonl"))
    collector.sweep(Sweep(3, frozenset(), frozenset({"out.0", "in.0"}), {"out.0": 2}))
    collector.close()
    assert store.keys() == ["out.0/sent-1-2"]


def test_what_a_lost_copy_has_spilled_is_deleted_whole_or_not_and_nothing_else(tmp_path):
    store = DirectoryStore(tmp_path / "store")
    others = ["out.0/sent-1-12", "out.0/sent-1-3", "out.0/state-1-2", "out.1/sent-1-2"]
    for key in ("out.0/sent-1-2", *others):
        store.put(key, [b"content"])
    (tmp_path / "store" / "out.0" / ".7.sent-2-2").write_bytes(b"cont")
    collector = GarbageCollector(store, Journal(tmp_path / "journal.jsonl"))
    collector.sweep(SweepCopy("out.0", 2))
    collector.close()
    assert store.keys() == others
