"""The effects that the coordinator has requested, until its caller carries them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from testbed.core.control import ToPartition
from testbed.core.coordinator.placement import Placement
from testbed.core.effects import CoordinatorEffect, Order


class Outbox:
    """The effects of a coordinator since they were taken last, in order."""

    def __init__(self, placement: Placement) -> None:
        self.effects: list[CoordinatorEffect] = []
        self._placement = placement

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
                self.effects.append(Order(worker, number, message(number)))
