"""An operator partition that keeps an output log instead of copies of its state."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.control import Restore
from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.frames import FrameKind
from testbed.core.partition.partition import PartitionLimits
from testbed.core.partition.snapshots import Core
from testbed.core.protocol import Protocol
from testbed.operators.parts import Parted
from testbed.output_log.policies import Policy
from testbed.output_log.recorded import RecordedOperator
from testbed.output_log.snapshots import LogSnapshots, ReplayedCore


def keeps_log(layout: PartitionLayout, protocol: type[Protocol]) -> bool:
    """Whether this partition is to be a `LoggedPartition` under this protocol."""
    return protocol.keeps_log and isinstance(layout.element, Parted)


class Budget(ABC):
    """The time that a partition may spend on saving parts: CI in every CP of the paper."""

    @abstractmethod
    def begins(self) -> bool:
        """Whether there is time for it now."""

    @abstractmethod
    def more(self) -> int:
        """For how many more parts there is time before this is asked again."""


class LoggedPartition(BatchedPartition):
    """Saves parts of its state between frames, as the policy wants and the budget allows.

    After a failure it reads again what its windows lack. It sends nothing until it has reached the checkpoint to which
    it rolls back. Then it repeats what it sent after the checkpoint, since no other partition has it; receivers
    recognize repeated messages by their numbers.

    While the store refuses its log or does not answer, it goes on only until a certain amount waits in memory.
    """

    _snapshots: LogSnapshots

    def __init__(self, *parts: Any, policy: Policy, budget: Budget) -> None:
        """`parts`: as of `BatchedPartition`; of an operator whose state has parts."""
        self._policy, self._budget = policy, budget
        self._until = 0
        super().__init__(*parts)

    def rebuilt(self, message: Restore, objects: Mapping[str, bytes]) -> tuple[RecordedOperator, Core]:
        operator = copy.deepcopy(self.layout.element)
        if not isinstance(operator, Parted):
            raise TypeError(f"the state of {self.layout.name} has no parts")
        operator.open()
        recorded = RecordedOperator(operator, self._policy)
        return recorded, self._snapshots.rebuild(message, objects, recorded)

    def ready_channels(self) -> list[int]:
        return [] if self._snapshots.overfull else super().ready_channels()

    def next_channel(self) -> int | None:
        return None if self._snapshots.overfull else super().next_channel()

    def step(self, channel: int) -> None:
        kind = self.intake.head(channel).kind
        super().step(channel)
        if kind is FrameKind.DATA and not self.tentative and self._budget.begins():
            self.save_parts()

    def save_parts(self) -> None:
        """Save the parts of the oldest windows, as long as the policy and the budget allow."""
        self.recorded.check(self._budget.more)

    @property
    def has_log(self) -> bool:
        """Whether its operator is here, with its log: not from when it has to roll back until it is restored."""
        return isinstance(self.processing.element, RecordedOperator)

    @property
    def recorded(self) -> RecordedOperator:
        """The operator, once it was restored. Raises `TypeError` while `has_log` is false."""
        found = self.processing.element
        if not isinstance(found, RecordedOperator):
            raise TypeError(f"{self.layout.name} was not restored")
        return found

    def _end_batch(self, batch: int) -> None:
        if batch > self._until:
            super()._end_batch(batch)

    def _assemble(self, limits: PartitionLimits) -> None:
        self._snapshots = LogSnapshots(self.layout)
        super()._assemble(limits)

    def _restore_channels(self, message: Restore, core: Core, objects: Mapping[str, bytes]) -> None:
        if not isinstance(core, ReplayedCore):
            raise TypeError(f"{self.layout.name} was not rebuilt from its log")
        super()._restore_channels(message, core, objects)
        self._until = core.until
        self._snapshots.go_on(self.recorded, core)
