"""What outlives the workers of a simulated run: the object store, and the topics that sinks write to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from testbed.core.control import Restore
from testbed.core.effects import Discard, Fetch, Publish, Spill, Store
from testbed.core.partition.partition import Partition
from testbed.simulation.outcome import SimulationResult, add_rows
from testbed.stores.store import MemoryStore, UnreadableObject

Reply = tuple[Callable[..., None], tuple[object, ...]]  # what happens to the partition that asked, and with what


class Storage:
    """Keeps objects and published output. It refuses this share of the writes, and counts in `outcome`."""

    def __init__(self, refusals: float, random: Random, outcome: SimulationResult) -> None:
        self.objects = MemoryStore()
        self._refusals, self._random, self._outcome = refusals, random, outcome
        self._published: dict[int, int] = {}

    def carry_out(self, asked: Store | Spill | Fetch | Discard) -> Reply | None:
        """Do what a partition has asked of the store; None if it hears nothing of that."""
        refused = self.refuses()
        match asked:
            case Store(of) if refused:
                return Partition.on_store_failed, (of.epoch, of.number)
            case Store(of):
                self._put(asked)
                return Partition.on_stored, (of.epoch, of.number)
            case Spill(key) if refused:
                return Partition.on_spill_refused, (key,)
            case Spill(key, content):
                self._outcome.spilled += 1
                self.objects.put(key, content())
                return Partition.on_spilled, (key,)
            case Fetch(key):
                return self._fetch(key)
            case Discard(keys):
                self.delete(keys)
        return None

    def refuses(self) -> bool:
        """Whether the store refuses what it is asked to write now."""
        return self._random.random() < self._refusals

    def read(self, order: Restore) -> dict[str, bytes]:
        """The objects that a partition needs to roll back, by key. Raises `UnreadableObject`."""
        return {key: self.objects.get(key) for key in (*order.checkpoint.state_keys, *order.log_keys)}

    def delete(self, keys: Iterable[str]) -> None:
        """Forget these objects."""
        for key in keys:
            self.objects.delete(key)

    def publish(self, number: int, output: Publish) -> bool:
        """Whether this output of a partition is new; then it is counted, else it was out before."""
        if output.number <= self.published(number):
            return False
        self._published[number] = output.number
        for batch in output.batches:
            add_rows(self._outcome.published, batch)
        return True

    def published(self, number: int) -> int:
        """The number of the last output of a partition that is published; 0 before the first."""
        return self._published.get(number, 0)

    def _put(self, asked: Store) -> None:
        for key, content in asked.objects.items():
            self.objects.put(key, content())

    def _fetch(self, key: str) -> Reply:
        try:
            data = self.objects.get(key)
        except UnreadableObject:
            return Partition.on_unreadable, (key,)
        self._outcome.fetched += 1
        return Partition.on_fetched, (key, data)
