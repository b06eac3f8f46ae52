"""Aggregates by key, over windows or over everything, running or when the window closes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.errors import BadInput
from spark_jobs.dataflow.operators.interface import Operator, require_column
from spark_jobs.dataflow.operators.windows import Windows
from spark_jobs.dataflow.state import KeyedState, State

FUNCTIONS = ("count", "sum", "min", "max")
WINDOW_START = "window_start_ns"
_INITIAL = {"count": 0, "sum": 0, "min": None, "max": None}
_MERGE = {"count": np.add, "sum": np.add, "min": np.minimum, "max": np.maximum}


class Emit(Enum):
    """When an aggregate emits: for every record that arrives, or once for a window when it closes."""

    RUNNING = "running"
    ON_CLOSE = "on-close"


@dataclass(frozen=True)
class Aggregation:
    """One aggregate: `function` (count, sum, min or max) of `column`, emitted as `name`; count takes no column."""

    name: str
    function: str
    column: str | None = None

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise BadInput(f"function of {self.name}", self.function, ", ".join(FUNCTIONS))
        if (self.column is None) != (self.function == "count"):
            raise BadInput(f"column of {self.name}", self.column, "a column, but none for count")


class Aggregate(Operator):
    """Aggregates by key. Emits the key, the window's start if there are windows, and the aggregates.

    A running aggregate emits one row for each record (and window that holds it): the aggregate including that record.
    It still forgets a window when it closes. Integer columns only: sums of floats would depend on the order.
    """

    def __init__(
        self, key: str, aggregations: tuple[Aggregation, ...], windows: Windows | None = None, emit: Emit = Emit.RUNNING
    ) -> None:
        if not aggregations:
            raise BadInput("aggregations", "none", "one or more")
        if windows is None and emit is Emit.ON_CLOSE:
            raise BadInput("emit", emit.value, "running, or windows that close")
        self.keys = (key,)
        self.windowed = windows is not None
        self._aggregations, self._windows, self._emit = aggregations, windows, emit

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        (given,) = inputs
        fields = [(self.keys[0], require_column("key", given, self.keys[0]))]
        if self._windows is not None:
            require_column("time", given, self._windows.time, pa.int64())
            fields.append((WINDOW_START, pa.int64()))
        for each in self._aggregations:
            if each.column is not None:
                require_column(f"column of {each.name}", given, each.column, pa.int64())
        self._schema = pa.schema(fields + [(each.name, pa.int64()) for each in self._aggregations])
        return self._schema

    def open(self) -> None:
        self._groups = KeyedState()

    def states(self) -> dict[str, State]:
        return {"groups": self._groups}

    def process(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        positions, groups, members = self._grouped(batch)
        inputs = [self._column(batch, each)[positions] for each in self._aggregations]
        running = [np.empty(positions.size, dtype=np.int64) for _ in inputs]
        for group, rows in zip(groups, members, strict=True):
            old = self._groups.get(*group) or tuple(_INITIAL[each.function] for each in self._aggregations)
            new = []
            for each, before, values, out in zip(self._aggregations, old, inputs, running, strict=True):
                out[rows] = _accumulate(each.function, before, values[rows])
                new.append(int(out[rows[-1]]))
            self._groups.put(*group, tuple(new))
        return self._running_rows(batch, positions, groups, members, running) if self._emit is Emit.RUNNING else None

    def advance(self, watermark_ns: int) -> pa.RecordBatch | None:
        if self._windows is None:
            return None
        closed = sorted(start for start in self._groups.buckets() if self._windows.closed_by(start, watermark_ns))
        groups = [(start, self._groups.drop(start)) for start in closed]
        rows = [(key, start, *values) for start, group in groups for key, values in sorted(group.items())]
        if self._emit is Emit.RUNNING or not rows:
            return None
        return pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), self._schema, strict=True)],
            schema=self._schema,
        )

    def _grouped(self, batch: pa.RecordBatch) -> tuple[npt.NDArray, list[tuple], list[npt.NDArray]]:
        """For each pair of record and window the record's position; the groups, and the pairs of each in order."""
        keys = batch.column(self.keys[0]).dictionary_encode()
        codes = keys.indices.to_numpy(zero_copy_only=False)
        if self._windows is None:
            positions, starts = np.arange(batch.num_rows), np.zeros(batch.num_rows, dtype=np.int64)
        else:
            positions, starts = self._windows.assign(batch.column(self._windows.time).to_numpy())
        order = np.lexsort((codes[positions], starts))
        codes, starts = codes[positions][order], starts[order]
        first = np.flatnonzero(np.r_[True, (np.diff(codes) != 0) | (np.diff(starts) != 0)])
        names = keys.dictionary.to_pylist()
        groups = [(int(starts[i]), names[codes[i]]) for i in first]
        return positions, groups, np.split(order, first[1:])

    def _column(self, batch: pa.RecordBatch, each: Aggregation) -> npt.NDArray:
        if each.column is None:
            return np.ones(batch.num_rows, dtype=np.int64)
        return batch.column(each.column).to_numpy()

    def _running_rows(
        self, batch: pa.RecordBatch, positions: npt.NDArray, groups: list, members: list, running: list
    ) -> pa.RecordBatch:
        columns: list[Any] = [batch.column(self.keys[0]).take(pa.array(positions))]
        if self._windows is not None:
            starts = np.empty(positions.size, dtype=np.int64)
            for (start, _), rows in zip(groups, members, strict=True):
                starts[rows] = start
            columns.append(pa.array(starts))
        return pa.RecordBatch.from_arrays(columns + [pa.array(each) for each in running], schema=self._schema)


def _accumulate(function: str, before: int | None, values: npt.NDArray) -> npt.NDArray:
    """The aggregate after each of the values."""
    merge = _MERGE[function]
    found = merge.accumulate(values)
    return found if before is None else merge(found, before)
