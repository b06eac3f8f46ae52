"""Objects in the store that are no longer needed: they are kept until nobody is about to read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from testbed.core.control import Restore
from testbed.core.effects import CoordinatorEffect, Delete


class Garbage:
    """Has objects deleted.

    An object can become garbage when a partition, or a copy of one, has just been told to read it: a message that its
    sink sent in an earlier life says that its log is published, say. Such an object is deleted once nobody reads it.
    """

    def __init__(self, effects: list[CoordinatorEffect]) -> None:
        """`effects`: those of the coordinator."""
        self._effects = effects
        self._reading: dict[tuple[int, int], tuple[str, ...]] = {}  # by partition and epoch of its life
        self._readers: Counter[str] = Counter()
        self._held: set[str] = set()

    def read_by(self, partition: int, order: Restore) -> Restore:
        """The order, which this partition or its copy is about to get."""
        keys = (*order.checkpoint.state_keys, *order.log_keys)
        self._reading[partition, order.epoch] = keys
        self._readers.update(keys)
        return order

    def end_reading(self, partition: int, epoch: int) -> None:
        """This life of a partition, or this copy, has read what it was told to, or another one takes its place.

        If a partition is lost meanwhile, its objects stay until it is restored again.
        """
        keys = self._reading.pop((partition, epoch), ())
        for key in keys:
            self._readers[key] -= 1
            if not self._readers[key]:
                del self._readers[key]
        free = [key for key in keys if key in self._held and not self._readers[key]]
        self._held.difference_update(free)
        self._delete(free)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete these objects: at once those that nobody reads, the others later."""
        found = list(keys)
        self._held.update(key for key in found if self._readers[key])
        self._delete([key for key in found if not self._readers[key]])

    def _delete(self, keys: list[str]) -> None:
        if keys:
            self._effects.append(Delete(tuple(keys)))
