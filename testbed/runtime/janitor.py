"""Deletes objects that nobody needs any more, in a thread of its own, since a store may take its time."""

from __future__ import annotations

import re
from collections import deque
from concurrent.futures import ThreadPoolExecutor

from experiments.errors import EnvironmentFailure
from journal.events.testbed import Undeleted
from journal.writer import Journal
from testbed.core.effects import Sweep
from testbed.stores.store import ObjectStore

OBJECT = re.compile(r"(?:state|log)-\d+-(?P<epoch>\d+)$")  # as `snapshots` names them, whole or not


class Janitor:
    """Does what it was asked in that order; what the store refuses is tried again with what it is asked next.

    The journal gets `undeleted` at each refusal. What nobody of this runtime has named is left alone.
    """

    def __init__(self, store: ObjectStore, journal: Journal) -> None:
        self._store, self._journal, self._thread = store, journal, ThreadPoolExecutor(1, thread_name_prefix="janitor")
        self._keys: deque[str] = deque()
        self._sweep: Sweep | None = None

    def delete(self, keys: tuple[str, ...]) -> None:
        self._thread.submit(self._clean, keys, None)

    def sweep(self, sweep: Sweep) -> None:
        """Delete what was written before an epoch, but for what is kept; it takes the place of any sweep before."""
        self._thread.submit(self._clean, (), sweep)

    def close(self) -> None:
        """Returns when all that was asked has been tried."""
        self._thread.shutdown(wait=True)

    def _clean(self, keys: tuple[str, ...], sweep: Sweep | None) -> None:
        self._keys.extend(keys)
        self._sweep = sweep or self._sweep
        try:
            self._delete_all()
            if self._sweep is not None:
                self._keys.extend(_leftovers(self._store.keys(), self._sweep))
                self._sweep = None
                self._delete_all()
        except EnvironmentFailure as refusal:
            self._journal.record(Undeleted(str(refusal)))

    def _delete_all(self) -> None:
        while self._keys:
            self._store.delete(self._keys[0])
            self._keys.popleft()


def _leftovers(stored: list[str], sweep: Sweep) -> list[str]:
    found = {key: OBJECT.search(key) for key in stored if key not in sweep.keep}
    return [key for key, named in found.items() if named and int(named["epoch"]) < sweep.epoch]
