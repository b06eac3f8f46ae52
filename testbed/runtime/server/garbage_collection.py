"""Deletes objects that are no longer needed, in a thread of its own, because a store may be slow."""

from __future__ import annotations

import re
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from experiments.errors import EnvironmentFailure
from journal.events.testbed import Undeleted
from journal.writer import Journal
from testbed.core.effects import Sweep
from testbed.stores.store import ObjectStore

OBJECT = re.compile(r"(?:state|log|sent|waiting)-\d+-(?P<epoch>\d+)$")  # as partitions name them, whole or not


class GarbageCollector:
    """Does what it was asked in that order; what the store refuses is tried again with what it is asked next.

    The journal gets `undeleted` at each refusal. Objects that this runtime has not named are left alone.
    """

    def __init__(self, store: ObjectStore, journal: Journal) -> None:
        self._store, self._journal, self._thread = store, journal, ThreadPoolExecutor(1, thread_name_prefix="garbage")
        self._keys: deque[str] = deque()
        self._sweeps: deque[Sweep] = deque()

    def delete(self, keys: tuple[str, ...]) -> None:
        """Delete the objects with these keys; returns at once."""
        self._thread.submit(self._clean, keys, None)

    def sweep(self, sweep: Sweep) -> None:
        """Delete what these partitions wrote before an epoch, but for what is kept."""
        self._thread.submit(self._clean, (), sweep)

    def close(self) -> None:
        """Returns when all that was asked has been tried."""
        self._thread.shutdown(wait=True)

    def _clean(self, keys: tuple[str, ...], sweep: Sweep | None) -> None:
        self._keys.extend(keys)
        self._sweeps.extend([sweep] if sweep is not None else [])
        try:
            self._delete_all()
            while self._sweeps:
                self._keys.extend(_leftovers(self._store.keys(), self._sweeps[0]))
                self._sweeps.popleft()
                self._delete_all()
        except EnvironmentFailure as refusal:
            self._journal.record(Undeleted(str(refusal)))

    def _delete_all(self) -> None:
        while self._keys:
            self._store.delete(self._keys[0])
            self._keys.popleft()


def _leftovers(stored: list[str], sweep: Sweep) -> list[str]:
    found = {key: OBJECT.search(key) for key in stored if sweep.takes(key)}
    return [key for key, named in found.items() if named and int(named["epoch"]) < sweep.epoch]
