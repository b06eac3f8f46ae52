"""Operators that keep their input slide by slide, and emit when a slide ends."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from testbed.operators.aggregate import Aggregation
from testbed.operators.interface import Operator, require_column
from testbed.operators.keyed_state import KeyedState
from testbed.operators.rows import AppendedRows
from testbed.operators.state import State
from testbed.operators.stateless import Predicate
from testbed.operators.windows import Windows
from workloads.schedule import NS_PER_MS

EVER, EMITTED = 0, "emitted until"
COUNT_ALL = "count_all"


class BySlide(Operator):
    """Keeps the input of a sliding window. When a slide in which something came has ended, `ended` says what to emit.

    What it emits has the time of the slide's last nanosecond: so it falls into the same slide of the next operator, and
    no watermark has passed it.
    """

    windowed = True

    def __init__(self, windows: Windows, ports: tuple[str, ...] = ("slides",)) -> None:
        """`ports`: a name for each input; all have the time column of the windows, and none is partitioned by key."""
        self.keys = (None,) * len(ports)
        self._windows, self._ports = windows, ports

    @abstractmethod
    def ended(self, end: int) -> pa.RecordBatch:
        """What the slide that ends then makes it emit."""

    def open(self) -> None:
        self._inputs: dict[str, AppendedRows[int]] = {name: AppendedRows() for name in self._ports}
        self._progress: KeyedState[int, str, int] = KeyedState()

    def states(self) -> dict[str, State]:
        return {**self._inputs, "progress": self._progress}

    def process(self, port: int, batch: pa.RecordBatch) -> None:
        slide_ns = self._windows.slide_ns
        starts = batch.column(self._windows.time).to_numpy() // slide_ns * slide_ns
        for start in np.unique(starts):
            self._inputs[self._ports[port]].add(int(start), batch.filter(pa.array(starts == start)))

    def advance(self, watermark_ns: int) -> pa.RecordBatch | None:
        slide_ns = self._windows.slide_ns
        begun, until = self._progress.get(EVER, EMITTED), watermark_ns // slide_ns * slide_ns
        if begun == until:
            return None
        starts = {start for each in self._inputs.values() for start in each.buckets()}
        found = [self.ended(s + slide_ns) for s in sorted(starts) if s < until and (begun is None or s >= begun)]
        for start in starts:
            if self._windows.closed_by(start, until):
                for each in self._inputs.values():
                    each.drop(start)
        self._progress.put(EVER, EMITTED, until)
        return pa.concat_batches(found) if found else None

    def slide(self, end: int, port: int = 0) -> list[pa.RecordBatch]:
        """The input of the slide that ends then."""
        return self._inputs[self._ports[port]].rows(end - self._windows.slide_ns)

    def window(self, end: int, port: int = 0) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The input of the window that ends then, each piece with the start of its slide; the earliest slide first."""
        rows = self._inputs[self._ports[port]]
        for start in sorted(rows.buckets()):
            if end - self._windows.size_ns <= start < end:
                for piece in rows.rows(start):
                    yield start, piece


def window_of(at_ns: int, window_ms: int) -> tuple[int, int]:
    """Start and end [ms] of the window for whose last slide something was emitted at this time."""
    end_ms = (at_ns + 1) // NS_PER_MS
    return end_ms - window_ms, end_ms


class SlideTotals(BySlide):
    """Aggregates the input of each slide by key columns, for rows that `where` chooses.

    Emits the time, the keys and the aggregates, in the order of the keys. Integer columns only.
    """

    def __init__(
        self,
        windows: Windows,
        by: tuple[str, ...],
        aggregations: tuple[Aggregation, ...],
        where: Predicate | None = None,
    ) -> None:
        super().__init__(windows)
        self._by, self._aggregations, self._where = by, aggregations, where

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        wanted = [self._windows.time, *self._by, *(each.column for each in self._aggregations if each.column)]
        for column in wanted:
            require_column("column", inputs[0], column, pa.int64())
        names = [self._windows.time, *self._by, *(each.name for each in self._aggregations)]
        self._schema = pa.schema([(name, pa.int64()) for name in names])
        return self._schema

    def process(self, port: int, batch: pa.RecordBatch) -> None:
        super().process(port, batch if self._where is None else batch.filter(self._where(batch)))

    def ended(self, end: int) -> pa.RecordBatch:
        return totals(self.slide(end), self._by, self._aggregations, end - 1, self._schema)


def totals(
    rows: list[pa.RecordBatch],
    by: tuple[str, ...],
    aggregations: tuple[Aggregation, ...],
    at_ns: int,
    schema: pa.Schema,
) -> pa.RecordBatch:
    """The aggregates of rows by key columns, in the order of the keys, each with this time in the first column."""
    wanted: list[Any] = [(each.column, each.function) if each.column else ([], COUNT_ALL) for each in aggregations]
    found = pa.Table.from_batches(rows).group_by(list(by), use_threads=False).aggregate(wanted)
    found = found.sort_by([(key, "ascending") for key in by])
    columns = [found.column(key) for key in by]
    columns += [found.column(f"{each.column}_{each.function}" if each.column else COUNT_ALL) for each in aggregations]
    arrays = [pa.array(np.full(found.num_rows, at_ns)), *(each.combine_chunks() for each in columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
