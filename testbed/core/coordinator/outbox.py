"""The effects that the coordinator has requested, until its caller carries them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from testbed.core.control import Ready, Restore, ToPartition
from testbed.core.coordinator.placement import Placement
from testbed.core.effects import CoordinatorEffect, Delete, Order


class Outbox:
    """The effects of a coordinator since they were taken last, in order.

    A message of an earlier life can make an object garbage that a partition was just told to read: its old sink has
    published, say. Such an object is deleted only when the partition is ready; if it is told to restore something else
    meanwhile, when the next one is.
    """

    def __init__(self, placement: Placement) -> None:
        self.effects: list[CoordinatorEffect] = []
        self._placement = placement
        self._restoring: dict[int, Restore] = {}  # by partition
        self._garbage: set[str] = set()

    def take(self) -> list[CoordinatorEffect]:
        """All effects; none is left."""
        effects = self.effects.copy()
        self.effects.clear()
        return effects

    def order(self, partitions: Iterable[int], message: Callable[[int], ToPartition]) -> None:
        """Send each of these partitions its message, if it is placed."""
        for number in partitions:
            worker = self._placement.worker_of(number)
            if worker is not None:
                order = message(number)
                self.effects.append(Order(worker, number, order))
                if isinstance(order, Restore):
                    self._restoring[number] = order

    def on_ready(self, message: Ready) -> None:
        """A partition has read what it was told to."""
        order = self._restoring.get(message.partition)
        if order is not None and order.epoch == message.epoch:
            del self._restoring[message.partition]
            self._delete_what_nobody_reads()

    def delete(self, keys: list[str]) -> None:
        """Delete these objects from the store, as soon as nobody is about to read them."""
        self._garbage.update(keys)
        self._delete_what_nobody_reads()

    def _delete_what_nobody_reads(self) -> None:
        if not self._garbage:
            return
        orders = self._restoring.values()
        found = self._garbage - {key for each in orders for key in (*each.checkpoint.state_keys, *each.log_keys)}
        if found:
            self._garbage -= found
            self.effects.append(Delete(tuple(sorted(found))))
