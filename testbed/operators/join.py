"""Joins of two streams by key."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.errors import BadInput
from testbed.operators.aggregate import WINDOW_START
from testbed.operators.interface import Operator, require_column
from testbed.operators.rows import RowState
from testbed.operators.state import State
from testbed.operators.windows import Windows

EVERYTHING = 0

Numbers = npt.NDArray[np.int64]


class Join(Operator):
    """Every pair of a left and a right record with equal keys, emitted when the later one arrives.

    Without windows it is incremental and remembers everything; with windows, one (tumbling or sliding) for each side
    by its own time column, both records must be in the same window, which is forgotten when it closes. Emits the left
    columns, then the right ones but for the key; a name that is there twice ends with `_right`.

    made_with   its arguments
    """

    joins = True

    def __init__(self, left_key: str, right_key: str, windows: tuple[Windows, Windows] | None = None) -> None:
        if windows and (windows[0].size_ns, windows[0].slide_ns) != (windows[1].size_ns, windows[1].slide_ns):
            raise BadInput("windows", windows[1].size_ns, f"the left side's, {windows[0].size_ns} ns")
        self.made_with = left_key, right_key, windows
        self.keys = self._keys = (left_key, right_key)
        self.windowed = windows is not None
        self._windows = windows

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        left, right = (require_column("key", given, key) for given, key in zip(inputs, self._keys, strict=True))
        if left != right:
            raise BadInput("key", f"{self.keys[1]} of type {right}", f"the type of {self.keys[0]}, {left}")
        for given, windows in zip(inputs, self._windows or (), strict=False):
            require_column("time", given, windows.time, pa.int64())
        self._right = [name for name in inputs[1].names if name != self.keys[1]]
        fields = [(each.name, each.type) for each in inputs[0]]
        taken = set(inputs[0].names)
        fields += [(f"{n}_right" if n in taken else n, inputs[1].field(n).type) for n in self._right]
        self._schema = pa.schema(([(WINDOW_START, pa.int64())] if self._windows else []) + fields)
        return self._schema

    def open(self) -> None:
        self._sides = tuple(RowState[int](key) for key in self._keys)

    def states(self) -> dict[str, State]:
        return dict(zip(("left", "right"), self._sides, strict=True))

    def process(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        pieces = []
        for bucket, rows in self._buckets(port, batch):
            self._sides[port].add(bucket, rows)
            positions, others = self._sides[1 - port].matches(bucket, rows.column(self.keys[port]).to_pylist())
            if others is not None:
                mine = rows.take(pa.array(positions))
                pieces.append(self._joined(bucket, *((mine, others) if port == 0 else (others, mine))))
        return pa.concat_batches(pieces) if pieces else None

    def advance(self, watermark_ns: int) -> None:
        if self._windows is not None:
            for side, windows in zip(self._sides, self._windows, strict=True):
                for bucket in side.buckets():
                    if windows.closed_by(bucket, watermark_ns):
                        side.drop(bucket)

    def _buckets(self, port: int, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
        """The batch by window, the earliest first; or as it is."""
        if self._windows is None:
            return [(EVERYTHING, batch)]
        windows = self._windows[port]
        rows, starts = windows.assign(batch.column(windows.time).to_numpy())
        return [(start, batch.take(pa.array(found))) for start, found in self._by_window(rows, starts)]

    def _by_window(self, rows: Numbers, starts: Numbers) -> list[tuple[int, Numbers]]:
        """From pairs of a record's number and a window's start the records of each window, the earliest first."""
        return [(int(start), rows[starts == start]) for start in np.unique(starts)]

    def _joined(self, bucket: int, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
        start = [pa.array(np.full(left.num_rows, bucket))] if self._windows is not None else []
        columns = [*start, *left.columns, *(right.column(name) for name in self._right)]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)
