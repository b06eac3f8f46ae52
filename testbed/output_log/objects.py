"""An output log as checkpoint objects: each has the entries since the previous checkpoint, and where the log begins."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

import pyarrow as pa

from testbed.core.partition.snapshots import Core
from testbed.core.seal import Piece
from testbed.output_log.blocks import NO_LIFE, Block, Segment, decode_segment
from testbed.output_log.eventual import EventualCheckpoint, StateLost, eventual_at
from testbed.output_log.reading import SegmentId


@dataclass(frozen=True)
class Border:
    """Where an operator was at a checkpoint.

    number     of the checkpoint
    position   how many records the operator had read
    entries    how many its log had
    core       channels, batch and event time of its partition
    """

    number: int
    position: int
    entries: int
    core: Core


@dataclass(frozen=True)
class LogObject:
    """What the operator did between two checkpoints."""

    epoch: int
    begin: Border
    end: Border
    block: Block

    def pieces(self) -> Iterable[Piece]:
        """Its bytes, in pieces; `decode_object` reads them."""
        yield pickle.dumps((self.epoch, self.begin, self.end), protocol=5)
        yield from Segment(self.epoch, 0, self.end.number, self.begin.entries, self.block).pieces()


def decode_object(data: bytes, rows: pa.Schema) -> LogObject:
    """The object of these bytes; `rows` is the schema of what the operator emits."""
    stream = BytesIO(data)
    epoch, begin, end = pickle.load(stream)
    return LogObject(epoch, begin, end, decode_segment(data[stream.tell() :], rows).block)


class Chain:
    """Objects one after the other, to be read backwards."""

    def __init__(self, objects: Sequence[LogObject]) -> None:
        self.objects = objects

    def backward(self, end: SegmentId) -> Iterator[tuple[SegmentId, Segment]]:
        """The segments from the last one back to the first. Raises `StateLost` if there is none before."""
        for each in reversed(self.objects):
            id = SegmentId(each.epoch, each.end.number)
            before = NO_LIFE if each.begin.number == 0 else 0
            yield id, Segment(id.life, before, id.number, each.begin.entries, each.block)
        raise StateLost(f"the log before checkpoint {self.objects[0].begin.number} is needed and gone")

    def eventual(self) -> EventualCheckpoint:
        """The eventual checkpoint at the end. Raises `StateLost`."""
        last = self.objects[-1]
        return eventual_at(self, SegmentId(last.epoch, last.end.number))

    def border(self, number: int) -> Border:
        """Where the operator was at the checkpoint with this number, at which an object begins or ends."""
        return next(border for each in self.objects for border in (each.begin, each.end) if border.number == number)
