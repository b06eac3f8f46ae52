"""Writes to the journal which partitions are absent, and which go on without them."""

from __future__ import annotations

from journal.events.testbed import PartitionsAbsent, PartitionTentative
from journal.writer import Journal
from testbed.core.control import ToCoordinator, ToPartition, TurnedTentative
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.dataflow.layout import Layout


class MissingInput:
    """Writes to the journal which input is missing, in a run that goes on without absent input; else nothing."""

    def __init__(self, layout: Layout, coordinator: Coordinator, journal: Journal) -> None:
        self._names = [each.name for each in layout.partitions]
        self._coordinator, self._journal = coordinator, journal
        self._told = coordinator.absent

    def hear(self, message: ToCoordinator | ToPartition) -> None:
        """A partition tells the coordinator something."""
        if isinstance(message, TurnedTentative) and message.epoch == self._coordinator.lives[message.partition]:
            self._journal.record(PartitionTentative(self._names[message.partition], message.epoch, message.batch))

    def look(self) -> None:
        """See whether others are absent than before."""
        if (absent := self._coordinator.absent) != self._told:
            self._told = absent
            self._journal.record(PartitionsAbsent(tuple(self._names[number] for number in sorted(absent))))
