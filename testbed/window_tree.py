"""The window tree (`ppa`, figure 6): operators of sliding windows in a row, each with fewer partitions than the last.

Partition j of an operator reads from partitions side by side of the one before it. `workloads.window_tree` says what is
the paper's, what is ours, and what the numbers mean.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.window_tree import WindowTreeSpec
from testbed.core.graph import Dataflow
from testbed.operators import Delivery, Operator, Windows, sliding
from testbed.operators.rows import AppendedRows
from testbed.operators.state import KeyedState, State
from workloads.window_tree import FACTOR, MARKS, NS_PER_MS, TUPLES, VALUES, limit

EVER, PASSED_ON = 0, "passed on until"


class PassingWindow(Operator):
    """Keeps its input of a sliding window. When a slide ends it passes on those tuples of it that get further.

    What goes on has the time of the slide's last nanosecond. So it falls into the same slide of the next operator, and
    no watermark has passed it. To its value the sum of the values in the window is added, which holds the slide that
    ends and those before it.
    """

    windowed = True

    def __init__(self, windows: Windows, limit: int) -> None:
        """`limit`: the lowest mark with which a tuple goes no further."""
        self._windows, self._limit = windows, limit

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        return TUPLES

    def open(self) -> None:
        self._slides: AppendedRows[int] = AppendedRows()
        self._progress: KeyedState[int, str, int] = KeyedState()

    def states(self) -> dict[str, State]:
        return {"slides": self._slides, "progress": self._progress}

    def process(self, port: int, batch: pa.RecordBatch) -> None:
        slide_ns = self._windows.slide_ns
        starts = batch.column(self._windows.time).to_numpy() // slide_ns * slide_ns
        for start in np.unique(starts):
            self._slides.add(int(start), batch.filter(pa.array(starts == start)))

    def advance(self, watermark_ns: int) -> pa.RecordBatch | None:
        slide_ns = self._windows.slide_ns
        begun, until = self._progress.get(EVER, PASSED_ON), watermark_ns // slide_ns * slide_ns
        if begun == until:
            return None
        ended = sorted(s for s in self._slides.buckets() if s < until and (begun is None or s >= begun))
        passed = [self._passed_on(start) for start in ended]
        for start in self._slides.buckets():
            if self._windows.closed_by(start, until):
                self._slides.drop(start)
        self._progress.put(EVER, PASSED_ON, until)
        return pa.concat_batches(passed) if passed else None

    def _passed_on(self, start: int) -> pa.RecordBatch:
        end = start + self._windows.slide_ns
        total = sum(pc.sum(rows.column("value")).as_py() for rows in self._held(end))
        ended = pa.concat_batches(self._slides.rows(start))
        found = ended.filter(pc.less(ended.column("mark"), self._limit))
        marks = found.column("mark").to_numpy() * FACTOR % MARKS
        sums = (found.column("value").to_numpy() + total) % VALUES
        times = np.full(found.num_rows, end - 1)
        columns = [found.column("position"), *(pa.array(column) for column in (times, marks, sums))]
        return pa.RecordBatch.from_arrays(columns, schema=TUPLES)

    def _held(self, end: int) -> Iterator[pa.RecordBatch]:
        """The input of the window that ends then."""
        for start in self._slides.buckets():
            if end - self._windows.size_ns <= start < end:
                yield from self._slides.rows(start)


def window_tree(spec: WindowTreeSpec, delivery: Delivery) -> Dataflow:
    """A source `tuples`, operators `window-1`, `window-2` and so on, and a sink as wide as the last of them."""
    flow, (sources, *widths) = Dataflow(spec.name), spec.parallelism
    stream = flow.source("tuples", TUPLES, sources, time="at_ns")
    windows = sliding("at_ns", spec.window_ms * NS_PER_MS, spec.slide_ms * NS_PER_MS)
    for number, width in enumerate(widths, 1):
        stream = flow.operator(f"window-{number}", PassingWindow(windows, limit(spec)), stream, parallelism=width)
    stream.sink("out", delivery)
    return flow


def packed_tuples(results: pa.RecordBatch, window_ms: int) -> Iterator[tuple[int, int, int, str]]:
    """Of each result start_ms and end_ms of its window, the position of its tuple, and the value."""
    columns = (results.column(name).to_pylist() for name in ("position", "at_ns", "value"))
    for position, at_ns, value in zip(*columns, strict=True):
        end_ms = (at_ns + 1) // NS_PER_MS
        yield end_ms - window_ms, end_ms, position, f'{{"value":{value}}}'
