"""The orders of a recovery: to partitions that roll back to the line, to their neighbours, and to the store."""

from __future__ import annotations

from collections.abc import Mapping, Set

from testbed.core.control import Rejoin, Restore
from testbed.core.coordinator.garbage import Garbage
from testbed.core.coordinator.history import History
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import Sweep


class LineOrders:
    """The orders that follow from the line as the history has it when they are given."""

    def __init__(self, layout: Layout, history: History, garbage: Garbage) -> None:
        self._layout, self._history, self._garbage = layout, history, garbage

    def restore(self, number: int, epoch: int) -> Restore:
        """The order to a partition, or to its copy, that rolls back to the line. What it reads stays until it has."""
        line = self._history.line
        logs = self._history.replayed_logs(number)
        outputs = self._layout.partitions[number].outputs
        arrived = {channel.id: line[channel.receiver].received[channel.id] for channel in outputs}
        return self._garbage.read_by(number, Restore(epoch, line[number], logs, arrived))

    def rejoins(self, restored: Set[int], up: Set[int], epoch: int) -> dict[int, Rejoin]:
        """What the neighbours of restored partitions hear that are up and are not restored themselves."""
        found: dict[int, Rejoin] = {}
        for number in up - restored:
            of = self._layout.partitions[number]
            outputs = tuple(c.id for c in of.outputs if c.receiver in restored)
            inputs = tuple(c.id for c in of.inputs if c.sender in restored)
            if outputs or inputs:
                found[number] = Rejoin(epoch, self._history.line[number].number, outputs, inputs)
        return found

    def sweep(self, back: Set[int], promoted: Mapping[int, int], epoch: int) -> Sweep:
        """What may stay in the store of the partitions that come back. Of those that are `promoted`, the lives of their
        copies."""
        names = {number: self._layout.partitions[number].name for number in back}
        of_copies = {names[number]: life for number, life in promoted.items()}
        return Sweep(epoch, frozenset(self._history.keys()), frozenset(names.values()), of_copies)
