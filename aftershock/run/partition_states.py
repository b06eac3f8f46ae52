"""Reads from the testbed's journal which partitions are up, absent, restoring or tentative, and which have a copy."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from journal.event import Event
from journal.events.common import DriverStarted
from journal.events.testbed import (
    Copied,
    EpochReady,
    PartitionsAbsent,
    PartitionTentative,
    PlanChanged,
    Recovering,
    WorkerLost,
)


class PartitionState(StrEnum):
    """How a partition is."""

    UP = "up"
    ABSENT = "absent"  # nothing comes from it: it was lost, or gets input only from such partitions
    RESTORING = "restoring"  # it rolls back to a checkpoint, or its copy takes its place
    TENTATIVE = "tentative"  # it goes on without some of its input


class PartitionStates:
    """A digest of the journal `query`: the state of every partition, by its name; none of another engine.

    copied   by the name of each partition that has a copy the worker that has it
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._of = {state: set[str]() for state in PartitionState}
        self._told_absent = frozenset[str]()
        self._restored_in: dict[str, int] = {}  # by partition the epoch of the last recovery that restores it
        self.copied: dict[str, str] = {}

    def take(self, event: Event) -> None:
        """Take in the next event of the query's journal."""
        match event:
            case Recovering(epoch=epoch, line=line, restored=restored, promoted=promoted):
                self._names = tuple(line)
                affected = (*restored, *promoted)
                self._restored_in |= dict.fromkeys(affected, epoch)
                self.copied = {name: worker for name, worker in self.copied.items() if name not in promoted}
                self._become(PartitionState.RESTORING, affected)
            case EpochReady(epoch=epoch):
                restoring = self._of[PartitionState.RESTORING]
                self._become(PartitionState.UP, [name for name in restoring if self._restored_in[name] == epoch])
            case DriverStarted():
                self._told_absent, self.copied = frozenset(), {}
                self._become(PartitionState.ABSENT, self._names)
            case WorkerLost(partitions=partitions):
                self._become(PartitionState.ABSENT, partitions or ())
            case PartitionTentative(partition=partition):
                self._become(PartitionState.TENTATIVE, [partition])
            case PartitionsAbsent(partitions=partitions):
                self._told_absent = frozenset(partitions)
            case Copied(workers=workers):
                self.copied = dict(workers)
            case PlanChanged(copied=wanted):
                self.copied = {name: worker for name, worker in self.copied.items() if name in wanted}

    def states(self) -> dict[str, PartitionState]:
        """In the order of the dataflow."""
        told = {name: state for state, names in self._of.items() for name in names}
        told |= dict.fromkeys(self._told_absent, PartitionState.ABSENT)
        return {name: told.get(name, PartitionState.UP) for name in self._names}

    def _become(self, state: PartitionState, names: Iterable[str]) -> None:
        found = set(names)
        for others in self._of.values():
            others -= found
        self._of[state] |= found
