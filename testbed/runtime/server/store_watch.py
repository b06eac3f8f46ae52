"""Writes to the journal who waits long for the store."""

from __future__ import annotations

from collections.abc import Mapping

from journal.events.testbed import StoreSlow
from journal.writer import Journal
from testbed.runtime.server.guest import Guest
from testbed.runtime.server.record_keeper import RecordKeeper

SLOW_S = 30.0
DRIVER = "driver"


class StoreWatch:
    """Tells the journal once of each wait that is long. A store that hangs refuses nothing, so nothing else tells."""

    def __init__(self, guests: Mapping[str, Guest], records: RecordKeeper, journal: Journal) -> None:
        self._guests, self._records, self._journal = guests, records, journal
        self._told = frozenset[str]()

    def look(self) -> None:
        """Check who waits now."""
        waits_s = {name: guest.status.store_s for name, guest in self._guests.items()}
        waits_s[DRIVER] = self._records.waited_s
        slow = frozenset(worker for worker, waited_s in waits_s.items() if waited_s >= SLOW_S)
        for worker in sorted(slow - self._told):
            self._journal.record(StoreSlow(worker, waits_s[worker]))
        self._told = slow
