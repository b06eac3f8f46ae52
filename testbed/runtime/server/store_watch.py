"""Writes to the journal who waits long for the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from journal.events.testbed import StoreSlow
from journal.writer import Journal
from testbed.runtime.server.guest import Guest

SLOW_S = 30.0
DRIVER = "driver"


class StoreUser(Protocol):
    """A part of the driver that asks the store, in a thread of its own."""

    @property
    def waited_s(self) -> float:
        """How long the store has been at what it was asked [s]; 0 if it has answered."""
        ...


class StoreWatch:
    """Tells the journal once of each wait that is long. A store that hangs refuses nothing, so nothing else tells."""

    def __init__(self, guests: Mapping[str, Guest], journal: Journal, *of_driver: StoreUser) -> None:
        self._guests, self._journal, self._of_driver = guests, journal, of_driver
        self._told = frozenset[str]()

    def look(self) -> None:
        """Check who waits now."""
        waits_s = {name: guest.status.store_s for name, guest in self._guests.items()}
        waits_s[DRIVER] = max(each.waited_s for each in self._of_driver)
        slow = frozenset(worker for worker, waited_s in waits_s.items() if waited_s >= SLOW_S)
        for worker in sorted(slow - self._told):
            self._journal.record(StoreSlow(worker, waits_s[worker]))
        self._told = slow
