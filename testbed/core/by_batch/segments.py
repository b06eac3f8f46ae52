"""Segments of retained output: consecutive frames of one channel, in memory, in the store, or both."""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.core.by_batch.cutting import border_of
from testbed.core.frames import Frame, FrameKind

FRAME_BYTES, COLUMN_BYTES = 500, 500  # what Python and Arrow need beside the values, as measured: a record has few


def held_bytes(frame: Frame) -> int:
    """About how much memory a frame takes up [bytes]."""
    batch = frame.batch
    return FRAME_BYTES + (0 if batch is None else batch.nbytes + COLUMN_BYTES * batch.num_columns)


@dataclass(eq=False)
class RetainedSegment:
    """
    first    the place of its first frame on the channel
    stop     the place behind its last one
    size     about how much memory its frames take up [bytes]
    frames   None while they are only in the store
    borders  of each border the batch that it ends, and the place behind it
    closed   whether no frame is added any more
    key      of the object in the store or on its way there; None if there is none
    stored   whether the object is there, or nothing of the segment is needed any more
    """

    channel: int
    first: int
    stop: int = -1
    size: int = 0
    frames: list[Frame] | None = field(default_factory=list)
    borders: list[tuple[int, int]] = field(default_factory=list)
    closed: bool = False
    key: str | None = None
    stored: bool = False

    def __post_init__(self) -> None:
        self.stop = self.first

    def __len__(self) -> int:
        return self.stop - self.first

    def add(self, frame: Frame) -> int:
        """Another frame follows; returns about how much memory it takes up [bytes]. Raises `ValueError` if closed."""
        if self.frames is None or self.closed:
            raise ValueError(f"a segment of channel {self.channel} is closed at {self.stop}")
        size = held_bytes(frame)
        self.frames.append(frame)
        self.stop += 1
        if frame.kind is FrameKind.BORDER:
            self.borders.append((border_of(frame), self.stop))
        self.size += size
        return size
