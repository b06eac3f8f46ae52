"""The window tree (`ppa`, figure 6): operators of sliding windows in a row, each with fewer partitions than the last.

Partition j of an operator reads from neighbouring partitions of the operator before it. `workloads.window_tree.input`
says what is the paper's, what is ours, and what the numbers mean.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.workloads.window_tree import WindowTreeSpec
from testbed.core.dataflow.graph import Dataflow
from testbed.operators import Delivery, Windows, sliding
from testbed.operators.by_slide import BySlide, window_of
from workloads.schedule import NS_PER_MS
from workloads.window_tree.input import FACTOR, MARKS, TUPLES, VALUES, limit


class PassingWindow(BySlide):
    """Keeps its input of a sliding window. When a slide ends it passes on those tuples of it that get further.

    To the value of a tuple the sum of the values in the window is added, which holds the slide that ends and those
    before it.
    """

    def __init__(self, windows: Windows, limit: int) -> None:
        """`limit`: the lowest mark with which a tuple goes no further."""
        super().__init__(windows)
        self._limit = limit

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        return TUPLES

    def ended(self, end: int) -> pa.RecordBatch:
        total = sum(pc.sum(rows.column("value")).as_py() for _, rows in self.window(end))
        ended = pa.concat_batches(self.slide(end))
        found = ended.filter(pc.less(ended.column("mark"), self._limit))
        marks = found.column("mark").to_numpy() * FACTOR % MARKS
        sums = (found.column("value").to_numpy() + total) % VALUES
        times = np.full(found.num_rows, end - 1)
        columns = [found.column("position"), *(pa.array(column) for column in (times, marks, sums))]
        return pa.RecordBatch.from_arrays(columns, schema=TUPLES)


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
    """For each result: start_ms and end_ms of its window, the position of its tuple, and the value."""
    columns = (results.column(name).to_pylist() for name in ("position", "at_ns", "value"))
    for position, at_ns, value in zip(*columns, strict=True):
        yield *window_of(at_ns, window_ms), position, f'{{"value":{value}}}'
