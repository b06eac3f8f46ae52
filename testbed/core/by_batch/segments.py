"""Segments of retained output."""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.core.by_batch.cutting import border_of
from testbed.core.frames import Frame, FrameKind
from testbed.core.segments import Segment


@dataclass(eq=False)
class RetainedSegment(Segment):
    """
    first    the place of its first frame on the channel
    stop     the place behind its last one
    borders  of each border the batch that it ends, and the place behind it
    """

    first: int = 0
    stop: int = -1
    borders: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stop = self.first

    def __len__(self) -> int:
        return self.stop - self.first

    def add(self, frame: Frame) -> int:
        size = super().add(frame)
        self.stop += 1
        if frame.kind is FrameKind.BORDER:
            self.borders.append((border_of(frame), self.stop))
        return size
