"""A source's input cut into batches by the time in its records: where a batch ends depends on content alone.

Batch b has the records whose time is in [b L, (b + 1) L), L the batch length. After them comes a border, which says
that all records up to this batch have been sent.
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from experiments.errors import AftershockError, BadInput
from testbed.core.checkpoints import NO_BATCH
from testbed.core.frames import Frame
from testbed.operators import END_OF_TIME_NS

BORDER = struct.Struct("<q")  # what a border frame carries: the batch that it ends
LAST_BATCH = 2**62  # ends an input that has come to its end
LONGEST_GAP = 100_000  # batches without a record: more of them are a wrong time rather than a silent source


class UnorderedSource(AftershockError):
    """The records of a source do not come in the order of their times, so it can't be cut into batches."""


@dataclass(frozen=True)
class Batching:
    """How long batches are [ns], and after how many of them every partition takes a checkpoint; None: never."""

    length_ns: int
    per_checkpoint: int | None

    def __post_init__(self) -> None:
        """Raises `BadInput`."""
        for name in ("length_ns", "per_checkpoint"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadInput(name, value, "1 or more")

    def checkpoint_at(self, batch: int) -> int | None:
        """The number of the checkpoint at the border that ends a batch; None if none is due there."""
        if self.per_checkpoint is None:
            return None
        number, rest = divmod(batch + 1, self.per_checkpoint)
        return number if not rest and number > 0 and batch < LAST_BATCH else None

    def next_checkpoint(self, batch: int) -> int | None:
        """The number of the first checkpoint whose border lies behind this batch; None if none is ever due."""
        if self.per_checkpoint is None:
            return None
        return 1 if batch == NO_BATCH else max(0, (batch + 1) // self.per_checkpoint) + 1

    def first_behind(self, number: int) -> int:
        """The first batch behind the checkpoint with this number; 0 stands for the beginning.

        Raises `ValueError` if no checkpoint is ever due.
        """
        if self.per_checkpoint is None and number:
            raise ValueError(f"checkpoint {number}, and there should be none")
        return number * (self.per_checkpoint or 0)

    def end_ns(self, batch: int) -> int:
        """The event time at which a batch ends: no record that follows is before it."""
        return END_OF_TIME_NS if batch == LAST_BATCH else (batch + 1) * self.length_ns


def border_of(frame: Frame) -> int:
    """The batch that a border ends."""
    (batch,) = BORDER.unpack(frame.piggyback)
    return int(batch)


@dataclass(frozen=True)
class Cut:
    """A border of a source, with the records that it sent since the border before.

    batch      the batch that ends here
    rows       its records; None if it has none
    position   where a source that continues behind the border reads on
    skipped    how many of the records from there on lie before the border
    """

    batch: int
    rows: pa.RecordBatch | None
    position: int
    skipped: int


class Cutter:
    """Cuts what one source partition reads. Holds the records of the batch that is still open."""

    def __init__(self, column: str, length_ns: int, batch: int, position: int, skipped: int) -> None:
        """`column`: the records' time [ns], which never decreases. The others are those of the last `Cut`."""
        self.position = position
        self._column, self._length_ns = column, length_ns
        self._border, self._skipped = batch, skipped
        self._held: list[pa.RecordBatch] = []

    def add(
        self, rows: pa.RecordBatch | None, position: int, ended: bool, times_ns: tuple[int, int] | None = None
    ) -> list[Cut]:
        """What was read from `self.position` to before `position`; returns the batches that this completes.

        `times_ns`: no record of this read is before the first time, and no later one before the second, if that is
        known. The first border lies before the first of all events, so that it does not depend on how much was read.
        Raises `UnorderedSource`.
        """
        start, self.position, cuts = self.position, position, list[Cut]()
        count = 0 if rows is None else rows.num_rows
        if times_ns is not None and self._border == NO_BATCH:
            cuts += self._end_before(times_ns[0] // self._length_ns, start, 0)
        if rows is not None and count:
            passed_over = min(self._skipped, count)
            self._skipped -= passed_over
            cuts += self._cut(rows.slice(passed_over), start, passed_over)
        if times_ns is not None and (batch := times_ns[1] // self._length_ns) > self._border:
            cuts += self._end_before(batch, start, count)
        if ended:
            cuts += [*self._close(position, 0), Cut(LAST_BATCH, None, position, 0)]
        return cuts

    def _cut(self, rows: pa.RecordBatch, start: int, passed_over: int) -> list[Cut]:
        """The cuts of the records of one read; `passed_over` records before them in this read were skipped."""
        batches = rows.column(self._column).to_numpy() // self._length_ns
        bounds = [0, *(np.flatnonzero(batches[1:] != batches[:-1]) + 1).tolist(), rows.num_rows]
        cuts: list[Cut] = []
        for first, stop in itertools.pairwise(bounds):
            if first < stop:
                cuts += self._end_before(int(batches[first]), start, passed_over + first)
                self._held.append(rows.slice(first, stop - first))
        return cuts

    def _end_before(self, batch: int, position: int, skipped: int) -> list[Cut]:
        """The input has come to this batch, so all batches before it are complete: a border for each."""
        open_batch = self._border + 1
        if batch < open_batch:
            raise UnorderedSource(f"a record of batch {batch} comes after the end of batch {self._border}")
        if self._border == NO_BATCH:
            self._border = batch - 1
            return [Cut(self._border, None, position, skipped)]
        if batch - open_batch > LONGEST_GAP:
            raise UnorderedSource(f"batch {batch} follows batch {open_batch}: {LONGEST_GAP} batches in between at most")
        cuts = self._close(position, skipped) if batch > open_batch else []
        cuts += [Cut(each, None, position, skipped) for each in range(self._border + 1, batch)]
        self._border = batch - 1
        return cuts

    def _close(self, position: int, skipped: int) -> list[Cut]:
        """The open batch ends with what is held of it."""
        if not self._held:
            return []
        (rows,) = pa.Table.from_batches(self._held).combine_chunks().to_batches()
        self._border, self._held = self._border + 1, []
        return [Cut(self._border, rows, position, skipped)]
