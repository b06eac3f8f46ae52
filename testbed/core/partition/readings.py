"""A source's log: where it read, instead of the data.

A source is read by position from something that gives the same again, so its messages are determined by the batches
that it read, in this order, and by where in between it told how far event time was.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from experiments.errors import AftershockError
from testbed.core.dataflow.layout import Channel
from testbed.core.frames import Frame, FrameKind

Piece = tuple[Channel, pa.RecordBatch | None]


class SourceChanged(AftershockError):
    """A source gives something else than it gave before: what was in flight is lost."""


@dataclass(slots=True)
class Reading:
    """What a source sent at one go.

    start, stop    the positions of the batch: from, and to before
    rows           of the batch; 0 where only event time was told
    watermark_ns   on all of its messages
    last           the last message's number on each channel that got any
    piggybacks     of the messages in order: how many in a row have which
    """

    start: int
    stop: int
    rows: int
    watermark_ns: int
    last: dict[int, int] = field(default_factory=dict)
    piggybacks: list[tuple[int, bytes]] = field(default_factory=list)

    def add(self, frame: Frame) -> None:
        """Another message."""
        self.last[frame.channel] = frame.sequence
        if self.piggybacks and self.piggybacks[-1][1] == frame.piggyback:
            self.piggybacks[-1] = (self.piggybacks[-1][0] + frame.messages, frame.piggyback)
        else:
            self.piggybacks.append((frame.messages, frame.piggyback))

    def frames(self, epoch: int, pieces: Sequence[Piece], *, in_ranges: bool = False) -> Iterator[Frame]:
        """The same messages again, from the pieces of the batch that was read again, each a message or a range.

        Raises `SourceChanged` where they can't be the same.
        """
        counts: Counter[int] = Counter()
        for channel, rows in pieces:
            counts[channel.id] += _messages(rows, in_ranges)
        if counts.keys() != self.last.keys() or sum(counts.values()) != sum(count for count, _ in self.piggybacks):
            raise SourceChanged(f"the records of positions {self.start} to {self.stop} go elsewhere than before")
        numbers = {channel: last - counts[channel] for channel, last in self.last.items()}
        piggybacks, with_same, piggyback = iter(self.piggybacks), 0, b""
        for channel, rows in pieces:
            if not with_same:
                with_same, piggyback = next(piggybacks)
            messages = _messages(rows, in_ranges)
            with_same -= messages  # a range has one piggyback
            numbers[channel.id] += messages
            number, is_range = numbers[channel.id], in_ranges and rows is not None
            yield Frame(FrameKind.DATA, epoch, channel.id, number, self.watermark_ns, piggyback, rows, is_range)


class Rereading:
    """The readings that have yet to be sent again, in order, and what was read of the first of them."""

    def __init__(self, readings: Iterable[Reading] = ()) -> None:
        self._readings, self._parts = deque(readings), list[pa.RecordBatch]()
        self._at: int | None = None

    def __bool__(self) -> bool:
        return bool(self._readings)

    @property
    def first(self) -> Reading:
        """The reading to be sent next; raises `IndexError` if none is left."""
        return self._readings[0]

    @property
    def span(self) -> tuple[int, int]:
        """Where to read on, and to before where."""
        return self.first.start if self._at is None else self._at, self.first.stop

    def add(self, batch: pa.RecordBatch | None, position: int) -> pa.RecordBatch | None:
        """A part was read, up to a position; returns the batch once it is whole. Raises `SourceChanged`."""
        if batch is not None:
            self._parts.append(batch)
        self._at = position
        if position < self.first.stop:
            return None
        found = pa.Table.from_batches(self._parts).combine_chunks().to_batches() if self._parts else []
        if position > self.first.stop or sum(each.num_rows for each in found) != self.first.rows:
            raise SourceChanged(
                f"positions {self.first.start} to {self.first.stop} had {self.first.rows} records before"
            )
        return found[0]

    def pop(self) -> Reading:
        """The first has been sent again."""
        self._parts, self._at = [], None
        return self._readings.popleft()


def _messages(rows: pa.RecordBatch | None, in_ranges: bool) -> int:
    return rows.num_rows if in_ranges and rows is not None else 1
