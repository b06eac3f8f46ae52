"""What the journal is told of a store that does not answer."""

from types import SimpleNamespace

from journal.reader import raw_entries
from journal.writer import Journal
from testbed.runtime.network.messages import SlotStatus
from testbed.runtime.server.store_watch import DRIVER, SLOW_S, StoreWatch


def test_each_long_wait_for_the_store_is_told_once(tmp_path):
    path = tmp_path / "journal.jsonl"
    guest, records, garbage = SimpleNamespace(), SimpleNamespace(), SimpleNamespace(waited_s=1.0)
    watch = StoreWatch({"slot-1": guest}, Journal(path), records, garbage)

    def told(slot_s, driver_s):
        guest.status, records.waited_s = SlotStatus(1, store_s=slot_s), driver_s
        watch.look()
        return [(each["event"], each["worker"], each["seconds"]) for each in raw_entries(path)]

    first, second = ("store-slow", "slot-1", SLOW_S), ("store-slow", DRIVER, SLOW_S + 2.0)
    assert told(SLOW_S - 1.0, 0.0) == []
    assert told(SLOW_S, 0.0) == [first]
    assert told(SLOW_S + 1.0, 0.0) == [first]
    assert told(0.0, SLOW_S + 2.0) == [first, second]
    assert told(SLOW_S, SLOW_S + 3.0) == [first, second, first]
