"""Aggregates by key, over windows or over everything, running or when the window closes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.errors import BadInput
from testbed.operators.interface import Operator, require_column
from testbed.operators.keyed_columns import KeyedColumns
from testbed.operators.state import State
from testbed.operators.windows import Windows

FUNCTIONS = ("count", "sum", "min", "max")
WINDOW_START = "window_start_ns"
_INITIAL = {"count": 0, "sum": 0, "min": np.iinfo(np.int64).max, "max": np.iinfo(np.int64).min}  # change nothing
_MERGE = {"min": np.minimum, "max": np.maximum}

Numbers = npt.NDArray[np.int64]


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

    made_with   its arguments
    """

    def __init__(
        self, key: str, aggregations: tuple[Aggregation, ...], windows: Windows | None = None, emit: Emit = Emit.RUNNING
    ) -> None:
        if not aggregations:
            raise BadInput("aggregations", "none", "one or more")
        if windows is None and emit is Emit.ON_CLOSE:
            raise BadInput("emit", emit.value, "running, or windows that close")
        self.made_with = key, aggregations, windows, emit
        self.keys, self._key = (key,), key
        self.windowed = windows is not None
        self._aggregations, self._windows, self._emit = aggregations, windows, emit
        self._initial = tuple(_INITIAL[each.function] for each in aggregations)

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        (given,) = inputs
        fields = [(self._key, require_column("key", given, self._key))]
        if self._windows is not None:
            require_column("time", given, self._windows.time, pa.int64())
            fields.append((WINDOW_START, pa.int64()))
        for each in self._aggregations:
            if each.column is not None:
                require_column(f"column of {each.name}", given, each.column, pa.int64())
        self._schema = pa.schema(fields + [(each.name, pa.int64()) for each in self._aggregations])
        return self._schema

    def open(self) -> None:
        key_type = self._schema.field(self._key).type
        self._groups: KeyedColumns[int, Any] = KeyedColumns(
            self._initial, np.int64 if key_type == pa.int64() else np.object_
        )

    def states(self) -> dict[str, State]:
        return {"groups": self._groups}

    def process(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        pairs = self._grouped(batch)
        found = [(start, self._groups.rows(start, keys)) for start, keys in pairs.groups]
        old = np.concatenate([self._groups.numbers(*each) for each in found])
        running = [
            _accumulate(each.function, before, self._column(batch, each)[pairs.positions], pairs.first, pairs.last)
            for each, before in zip(self._aggregations, old.T, strict=True)
        ]
        new, at = np.column_stack([each[pairs.last] for each in running]), 0
        for start, rows in found:
            self._groups.put(start, rows, new[at : at + rows.size])
            at += rows.size
        return self._running_rows(batch, pairs, running) if self._emit is Emit.RUNNING else None

    def advance(self, watermark_ns: int) -> pa.RecordBatch | None:
        if self._windows is None:
            return None
        closed = sorted(start for start in self._groups.buckets() if self._windows.closed_by(start, watermark_ns))
        groups = [(start, *self._groups.drop(start)) for start in closed]
        if self._emit is Emit.RUNNING or not groups:
            return None
        return pa.concat_batches([self._closed(*each) for each in groups])

    def _closed(self, start: int, keys: list[Any], numbers: Numbers) -> pa.RecordBatch:
        """The rows of a window, in the order of their keys."""
        order = sorted(range(len(keys)), key=keys.__getitem__)
        names = pa.array([keys[at] for at in order], self._schema.field(self._key).type)
        columns = [names, pa.array(np.full(len(keys), start)), *map(pa.array, numbers[order].T)]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _grouped(self, batch: pa.RecordBatch) -> Pairs:
        keys = batch.column(self._key).dictionary_encode()
        codes = keys.indices.to_numpy(zero_copy_only=False)
        positions, starts = self._assigned(batch)
        order = np.lexsort((codes[positions], starts))
        codes, starts = codes[positions[order]], starts[order]
        changed = (codes[1:] != codes[:-1]) | (starts[1:] != starts[:-1])
        first = np.concatenate(([0], np.flatnonzero(changed) + 1))
        last = np.concatenate((first[1:], [positions.size])) - 1
        names = keys.dictionary.to_pylist()
        groups: dict[int, list[Any]] = {}
        for start, code in zip(starts[first].tolist(), codes[first].tolist(), strict=True):
            groups.setdefault(start, []).append(names[code])
        return Pairs(positions[order], starts, order, first, last, list(groups.items()))

    def _assigned(self, batch: pa.RecordBatch) -> tuple[Numbers, Numbers]:
        """Which windows hold which records, as `Windows.assign` says it; without windows all start at 0."""
        if self._windows is None:
            return np.arange(batch.num_rows), np.zeros(batch.num_rows, dtype=np.int64)
        return self._windows.assign(batch.column(self._windows.time).to_numpy())

    def _column(self, batch: pa.RecordBatch, each: Aggregation) -> Numbers:
        if each.column is None:
            return np.ones(batch.num_rows, dtype=np.int64)
        found: Numbers = batch.column(each.column).to_numpy()
        return found

    def _running_rows(self, batch: pa.RecordBatch, pairs: Pairs, running: list[Numbers]) -> pa.RecordBatch:
        """The rows in the order of the records, of one record the earliest window first."""
        back = np.empty_like(pairs.order)
        back[pairs.order] = np.arange(back.size)
        columns: list[Any] = [batch.column(self._key).take(pa.array(pairs.positions[back]))]
        if self._windows is not None:
            columns.append(pa.array(pairs.starts[back]))
        return pa.RecordBatch.from_arrays(columns + [pa.array(each[back]) for each in running], schema=self._schema)


@dataclass(frozen=True)
class Pairs:
    """The pairs of a record and a window that holds it, sorted by group: by window, then by key.

    positions   of the records in the batch; order: where the pairs were before sorting
    first, last where each group begins and ends; groups: for each window its keys
    """

    positions: Numbers
    starts: Numbers
    order: Numbers
    first: Numbers
    last: Numbers
    groups: list[tuple[int, list[Any]]]


def _accumulate(function: str, before: Numbers, values: Numbers, first: Numbers, last: Numbers) -> Numbers:
    """The aggregate after each of the values, which come group by group, from what it was before for each group."""
    if function in ("count", "sum"):
        sums = np.cumsum(values)
        offsets = before - sums[first] + values[first]
        return sums + np.repeat(offsets, last - first + 1)
    merge, found = _MERGE[function], values.copy()
    found[first] = merge(found[first], before)
    for start, end in zip(first.tolist(), last.tolist(), strict=True):
        merge.accumulate(found[start : end + 1], out=found[start : end + 1])
    return found
