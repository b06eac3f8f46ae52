"""Holds back the output of a copy until the copy replaces its primary."""

from __future__ import annotations

from collections import deque

from testbed.core.effects import PartitionEffect, Publish, Write


class WithheldOutput:
    """The output of a sink's copy, by batch, since a checkpoint before which all is published.

    size_bytes   the size of what is kept
    """

    def __init__(self) -> None:
        self._effects: deque[tuple[int, Publish | Write]] = deque()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._effects)

    def hold(self, batch: int, effects: list[PartitionEffect]) -> list[PartitionEffect]:
        """Keep what these effects of a batch would emit; returns the others."""
        for each in effects:
            if isinstance(each, Publish | Write):
                self._effects.append((batch, each))
                self.size_bytes += _size_bytes(each)
        return [each for each in effects if not isinstance(each, Publish | Write)]

    def trim(self, first: int) -> None:
        """The output of all batches before this one is published."""
        while self._effects and self._effects[0][0] < first:
            self.size_bytes -= _size_bytes(self._effects.popleft()[1])

    def take(self) -> list[Publish | Write]:
        """All that is kept, in order: it may be published now."""
        effects, self._effects, self.size_bytes = self._effects, deque(), 0
        return [each for _, each in effects]


def _size_bytes(effect: Publish | Write) -> int:
    return sum(rows.nbytes for rows in (effect.batches if isinstance(effect, Publish) else (effect.batch,)))
