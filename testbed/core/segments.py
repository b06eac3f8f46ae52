"""Segments: consecutive frames of one channel, in memory, in the store, or both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from testbed.core.frames import Frame

FRAME_BYTES, COLUMN_BYTES = 500, 500  # what Python and Arrow need beside the values, as measured: a record has few


def held_bytes(frame: Frame) -> int:
    """About how much memory a frame takes up [bytes]."""
    batch = frame.batch
    return FRAME_BYTES + (0 if batch is None else batch.nbytes + COLUMN_BYTES * batch.num_columns)


@dataclass(eq=False)
class Segment:
    """
    size     about how much memory its frames take up [bytes]
    frames   None while they are only in the store
    closed   whether no frame is added any more
    key      of the object in the store or on its way there; None if there is none
    stored   whether the object is there, or nothing of the segment is needed any more
    """

    channel: int
    size: int = 0
    frames: list[Frame] | None = field(default_factory=list)
    closed: bool = False
    key: str | None = None
    stored: bool = False

    def add(self, frame: Frame) -> int:
        """Another frame follows; returns about how much memory it takes up [bytes]. Raises `ValueError` if closed."""
        if self.frames is None or self.closed:
            raise ValueError(f"a segment of channel {self.channel} is closed")
        size = held_bytes(frame)
        self.frames.append(frame)
        self.size += size
        return size


class SpilledOutput(ABC):
    """Output that its sender puts into the store for a while, in segments.

    What the store says of an earlier life of the sender is of no use.
    """

    @property
    @abstractmethod
    def overfull(self) -> bool:
        """Whether the store does not keep up: nothing more should come until it does."""

    @property
    @abstractmethod
    def keys(self) -> frozenset[str]:
        """The objects that are in the store or on their way there."""

    @abstractmethod
    def on_spilled(self, key: str) -> None:
        """The store has an object."""

    @abstractmethod
    def on_refused(self, key: str) -> None:
        """The store refused an object: it is tried again with `retry`."""

    @abstractmethod
    def retry(self) -> None:
        """Time to try again what the store refused."""

    @abstractmethod
    def on_fetched(self, key: str, frames: Sequence[Frame]) -> int | None:
        """What was read back; returns the channel that can be read on, if one can."""
