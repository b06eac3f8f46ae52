"""The rounds of coordinated checkpoints: which one is under way, and which partitions have not reported on it yet."""

from __future__ import annotations

from collections.abc import Iterable


class CheckpointRounds:
    """One round at a time: the next one begins when all have reported on the one before.

    number   of the last round that has begun
    """

    def __init__(self) -> None:
        self.number, self._unreported = 0, set[int]()

    @property
    def under_way(self) -> bool:
        """Whether somebody has yet to report."""
        return bool(self._unreported)

    def begin(self, partitions: Iterable[int]) -> None:
        """All of these partitions shall take a checkpoint, and report on it."""
        self.number += 1
        self._unreported = set(partitions)

    def report(self, partition: int, number: int) -> None:
        """A partition's checkpoint of a round is stored, or won't be."""
        if number == self.number:
            self._unreported.discard(partition)

    def abandon(self) -> None:
        """A recovery begins: the coordinator does not wait for the reports any more."""
        self._unreported = set()
