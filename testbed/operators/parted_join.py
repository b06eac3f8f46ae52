"""Joins over windows whose state is saved window by window."""

from __future__ import annotations

import struct
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.errors import BadInput
from testbed.operators.join import Join, Numbers
from testbed.operators.parts import Footprints, Known, Parted, Recorder
from testbed.operators.windows import Windows

START, LENGTH = struct.Struct("<q"), struct.Struct("<Q")


class PartedJoin(Join, Parted):
    """A windowed join in parts: a window goes by its start, and its part has the records of both sides.

    Windows close without a row of their own. A position counts the records of both sides, in the order in which the
    operator takes them in.
    """

    def __init__(self, left_key: str, right_key: str, windows: tuple[Windows, Windows] | None) -> None:
        if windows is None:
            raise BadInput("windows", None, "windows for both sides: without them the state of a join has no parts")
        super().__init__(left_key, right_key, windows)

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        self._inputs = inputs
        return super().schema(*inputs)

    def open(self) -> None:
        super().open()
        self._recorder, self._known = Recorder(), Known()
        self._open: set[int] = set()
        self.position = 0

    def process(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        self._recorder.begin()
        before = set(self._open)
        self._first = self.position + 1
        self.position += batch.num_rows
        rows = super().process(port, batch)
        self._known.forget_at(self.position)
        for start in sorted(self._open - before):
            window = START.pack(start)
            self._recorder.opened(window, self.position, self.part(window))
        self._recorder.emitted(self.position, rows.num_rows if rows is not None else 0)
        return rows

    def advance(self, watermark_ns: int) -> None:
        self._recorder.begin()
        super().advance(watermark_ns)
        left = {start for side in self._sides for start in side.buckets()}
        for start in sorted(self._open - left):
            self._recorder.closed(START.pack(start), self.position)
        self._open = left

    def footprints(self) -> Footprints:
        return self._recorder.footprints()

    def part(self, window: bytes) -> bytes:
        (start,) = START.unpack(window)
        if start not in self._open:
            raise KeyError(window)
        sides = zip(self._inputs, self._sides, strict=True)
        left, right = (_bytes(pa.RecordBatch.from_pylist([], schema), side.rows(start)) for schema, side in sides)
        return LENGTH.pack(len(left)) + left + right

    def parts(self) -> dict[bytes, bytes]:
        return {START.pack(start): self.part(START.pack(start)) for start in self._open}

    def load(self, window: bytes, part: bytes, at: int) -> None:
        (start,), (length,) = START.unpack(window), LENGTH.unpack_from(part)
        data = memoryview(part)[LENGTH.size :]
        for side, schema, each in zip(self._sides, self._inputs, (data[:length], data[length:]), strict=True):
            rows = pa.ipc.read_record_batch(pa.py_buffer(each), schema)
            if rows.num_rows:
                side.add(start, rows)
        self._open.add(start)
        self._known.add(window, at)

    def ignore(self, window: bytes, at: int) -> None:
        self._known.add(window, at)

    def _by_window(self, rows: Numbers, starts: Numbers) -> list[tuple[int, Numbers]]:
        """But for the records that a window has already."""
        found = super()._by_window(rows, starts)
        if self._known:
            found = [(start, each[self._new(start, each)]) for start, each in found]
            found = [(start, each) for start, each in found if each.size]
        self._open.update(start for start, _ in found)
        return found

    def _new(self, start: int, rows: Numbers) -> npt.NDArray[np.bool_]:
        return self._known.new(repeat(START.pack(start), rows.size), self._first + rows)


def _bytes(empty: pa.RecordBatch, rows: list[pa.RecordBatch]) -> bytes:
    found: bytes = pa.concat_batches([empty, *rows]).serialize().to_pybytes()
    return found
