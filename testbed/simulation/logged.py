"""Invariants of partitions that keep an output log."""

from __future__ import annotations

from experiments.errors import AftershockError
from testbed.core.checkpoints import Checkpoint
from testbed.output_log.partition import LoggedPartition


class WrongState(AftershockError):
    """A partition is in another state at a border than before at the same border, so its log did not give it back."""


class LoggedChecks:
    """The state at a border is the same in every life of the partition; needed records from before it are input again.

    replayed   at how many checkpoints input from before them is needed
    """

    def __init__(self) -> None:
        self._states: dict[tuple[int, int], dict[bytes, bytes]] = {}
        self._taken: set[tuple[int, int, int]] = set()  # partition, number and epoch of each checkpoint
        self.replayed = 0

    def check_checkpoint(self, partition: LoggedPartition, checkpoint: Checkpoint) -> None:
        """A partition takes a checkpoint, or has one written again. Raises `WrongState`."""
        life = partition.number, checkpoint.number, checkpoint.epoch
        if life in self._taken:
            return
        self._taken.add(life)
        parts = partition.recorded.operator.parts()
        known = self._states.setdefault((partition.number, checkpoint.number), parts)
        if parts != known:
            windows = sorted(each for each in {*parts, *known} if parts.get(each) != known.get(each))
            raise WrongState(f"{partition.layout.name}, checkpoint {checkpoint.number}: windows {windows} differ")
        self.replayed += checkpoint.input_from < checkpoint.number
