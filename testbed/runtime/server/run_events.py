"""Writes the course of a run to the journal: epochs, copies, rounds of checkpoints, and final output."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from journal.events.testbed import Committed, Copied, EpochReady, RoundStarted, RoundStored
from journal.writer import Journal
from testbed.core.checkpoints import Line
from testbed.core.control import Go, Restore, Round, Stored
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.dataflow.layout import Layout
from testbed.operators import Source


class RunEvents:
    """Hears what the coordinator orders and what partitions have stored; `tasks` tells the Spark tasks of the slots."""

    def __init__(
        self, layout: Layout, coordinator: Coordinator, journal: Journal, tasks: Callable[[], Iterable[int]]
    ) -> None:
        self._names = [each.name for each in layout.partitions]
        self._sources = {each.number for each in layout.partitions if isinstance(each.element, Source)}
        self._coordinator, self._journal, self._tasks = coordinator, journal, tasks
        self._committed = coordinator.history.stable
        self._ready_epoch = 0
        self._round: tuple[int, set[int]] = (0, set())

    def order(self, message: object) -> None:
        """The coordinator orders this of a partition."""
        if isinstance(message, Go) and message.epoch != self._ready_epoch:
            self._ready_epoch = message.epoch
            self._journal.record(EpochReady(message.epoch, tuple(sorted(self._tasks()))))
        elif isinstance(message, Round) and message.number != self._round[0]:
            self._round = (message.number, set(range(len(self._names))))
            self._journal.record(RoundStarted(message.epoch, message.number))
        elif isinstance(message, Restore):
            self._round = (self._round[0], set())

    def placed(self, epoch: int) -> None:
        """The coordinator has placed copies, from this epoch on."""
        copies = self._coordinator.copies.of
        self._journal.record(Copied(epoch, {self._names[number]: each.worker for number, each in copies.items()}))

    def stored(self, message: Stored) -> None:
        """A partition has stored a checkpoint."""
        number, awaited = self._round
        if message.checkpoint.number == number and message.epoch == self._coordinator.epoch and awaited:
            awaited.discard(message.checkpoint.partition)
            if not awaited:
                self._journal.record(RoundStored(message.epoch, number))

    def look(self) -> None:
        """See whether more of the output is final than before."""
        history = self._coordinator.history
        if history.stable is not self._committed and history.is_published:
            self._committed = history.stable
            self._journal.record(Committed(self.sources_at(history.covered(history.stable))))

    def sources_at(self, line: Line) -> dict[str, int]:
        """Where a line has the sources, by their names."""
        return {self._names[at.partition]: at.position for at in line if at.partition in self._sources}
