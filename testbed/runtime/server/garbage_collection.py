"""Deletes objects that are no longer needed, in a thread of its own, because a store may be slow."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

from experiments.errors import EnvironmentFailure
from journal.events.testbed import Undeleted
from journal.writer import Journal
from testbed.core.effects import Sweep, SweepCopy
from testbed.runtime.background import UnderWay
from testbed.stores.store import ObjectStore

OBJECT = re.compile(r"(?:state|log|sent|waiting)-\d+-(?P<epoch>\d+)$")  # as partitions name them, whole or not
MOST_REFUSALS = 3
LOOK_S = 0.5


class GarbageCollector:
    """Does what it was asked in that order. What the store refuses to delete is set aside, so that it blocks nothing
    else, and is tried again with what is asked next. So is what has to wait because the store refuses several in a row.

    The journal gets `undeleted` when the store refuses. Objects that this runtime has not named are left alone.
    """

    def __init__(self, store: ObjectStore, journal: Journal) -> None:
        self._store, self._journal, self._thread = store, journal, ThreadPoolExecutor(1, thread_name_prefix="garbage")
        self._keys, self._set_aside = dict[str, None](), dict[str, None]()  # sets that keep their order
        self._sweeps: deque[Sweep | SweepCopy] = deque()
        self._request = UnderWay()

    @property
    def waited_s(self) -> float:
        """How long the store has been at the last request [s]; 0 if it has answered."""
        return self._request.seconds

    def delete(self, keys: tuple[str, ...]) -> None:
        """Delete the objects with these keys; returns at once."""
        self._thread.submit(self._clean, keys, None)

    def sweep(self, sweep: Sweep | SweepCopy) -> None:
        """Delete what some partitions wrote before an epoch, but for what is kept, or what a copy has spilled."""
        self._thread.submit(self._clean, (), sweep)

    def close(self, while_waiting: Callable[[], None] = lambda: None) -> None:
        """Returns when all is done that the store does not refuse now; the rest is left to whoever clears the store.

        A store that hangs refuses nothing: until it answers, `while_waiting` is called now and then.
        """
        last = self._thread.submit(lambda: None)
        while wait([last], LOOK_S).not_done:
            while_waiting()
        self._thread.shutdown(wait=True)

    def _clean(self, keys: tuple[str, ...], sweep: Sweep | SweepCopy | None) -> None:
        self._ask(keys)
        self._sweeps.extend([sweep] if sweep is not None else [])
        refusals = [self._delete(self._set_aside, most_refusals=1), self._delete(self._keys)]
        try:
            while self._sweeps:
                found = _leftovers(self._request.do(self._store.keys), self._sweeps[0])
                self._sweeps.popleft()
                self._ask(found)
                refusals.append(self._delete(self._keys))
        except EnvironmentFailure as refusal:
            refusals.append(refusal)
        for each in filter(None, refusals):
            self._journal.record(Undeleted(str(each)))

    def _ask(self, keys: Iterable[str]) -> None:
        self._keys |= dict.fromkeys(key for key in keys if key not in self._set_aside)

    def _delete(self, keys: dict[str, None], most_refusals: int = MOST_REFUSALS) -> EnvironmentFailure | None:
        """Try each of these once; returns the last refusal. After several in a row the others wait for the next call:
        a store that is out of reach refuses all of them, and may take long for each."""
        last, in_a_row = None, 0
        for key in tuple(keys):
            del keys[key]
            try:
                self._request.do(partial(self._store.delete, key))
                in_a_row = 0
            except EnvironmentFailure as refusal:
                last, in_a_row = refusal, in_a_row + 1
                self._set_aside[key] = None
            if in_a_row >= most_refusals:
                break
        return last


def _leftovers(stored: list[str], sweep: Sweep | SweepCopy) -> list[str]:
    if isinstance(sweep, SweepCopy):
        return list(filter(sweep.takes, stored))
    found = {key: OBJECT.search(key) for key in stored if sweep.takes(key)}
    return [key for key, named in found.items() if named and int(named["epoch"]) < sweep.epoch]
