"""Holds back the output of a copy until the copy replaces its primary."""

from __future__ import annotations

from collections import deque

from testbed.core.effects import PartitionEffect, Publish, Write


class WithheldOutput:
    """The output of a sink's copy, by batch, since a checkpoint before which all is published."""

    def __init__(self) -> None:
        self._effects: deque[tuple[int, Publish | Write]] = deque()

    def __len__(self) -> int:
        return len(self._effects)

    @property
    def size_bytes(self) -> int:
        """The size of what is kept."""
        return sum(
            rows.nbytes
            for _, each in self._effects
            for rows in (each.batches if isinstance(each, Publish) else (each.batch,))
        )

    def hold(self, batch: int, effects: list[PartitionEffect]) -> list[PartitionEffect]:
        """Keep what these effects of a batch would emit; returns the others."""
        self._effects.extend((batch, each) for each in effects if isinstance(each, Publish | Write))
        return [each for each in effects if not isinstance(each, Publish | Write)]

    def trim(self, first: int) -> None:
        """The output of all batches before this one is published."""
        while self._effects and self._effects[0][0] < first:
            self._effects.popleft()

    def take(self) -> list[Publish | Write]:
        """All that is kept, in order: it may be published now."""
        effects, self._effects = self._effects, deque()
        return [each for _, each in effects]
