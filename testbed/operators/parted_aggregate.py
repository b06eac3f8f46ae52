"""Aggregates whose state is saved window by window."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa

from experiments.errors import BadInput
from testbed.operators.aggregate import Aggregate, Emit, Numbers, Pairs
from testbed.operators.parts import TOGETHER, EntryKind, Footprints, Known, Parted, Recorder

START = struct.Struct("<q")


class PartedAggregate(Aggregate, Parted):
    """An aggregate in parts: a window is one key's, and goes by its start and that key.

    Without windows over time each key has one, which never closes. Keys are int64 or string.
    """

    together = TOGETHER

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        found = super().schema(*inputs)
        self._key_type = found.field(self._key).type
        if self._key_type not in (pa.int64(), pa.string()):
            raise BadInput("key", f"{self._key} of type {self._key_type}", "int64 or string, which windows can go by")
        return found

    def open(self) -> None:
        super().open()
        self._recorder, self._known = Recorder(), Known()
        self._opened: list[tuple[int, Any]] = []
        self.position = 0

    def process(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        self._recorder.begin()
        self._opened = []
        self.position += batch.num_rows
        known = self._known and not self._assigned(batch)[0].size
        rows = None if known else super().process(port, batch)
        self._known.forget_at(self.position)
        for start, key in self._opened:
            window = self._name(start, key)
            self._recorder.opened(window, self.position, self.part(window))
        self._recorder.emitted(self.position, rows.num_rows if rows is not None else 0)
        return rows

    def advance(self, watermark_ns: int) -> pa.RecordBatch | None:
        self._recorder.begin()
        closed = self._windows.closed_by if self._windows is not None else None
        starts = sorted(start for start in self._groups.buckets() if closed and closed(start, watermark_ns))
        kind = EntryKind.RESULT if self._emit is Emit.ON_CLOSE else EntryKind.CLOSE
        for start in starts:
            for key in sorted(self._groups.keys(start)):
                self._recorder.closed(self._name(start, key), self.position, kind)
        return super().advance(watermark_ns)

    def footprints(self) -> Footprints:
        return self._recorder.footprints()

    def part(self, window: bytes) -> bytes:
        found = self._groups.get(*self._named(window))
        if found is None:
            raise KeyError(window)
        return struct.pack(f"<{len(found)}q", *found)

    def parts(self) -> dict[bytes, bytes]:
        starts = self._groups.buckets()
        windows = [self._name(start, key) for start in starts for key in self._groups.keys(start)]
        return {window: self.part(window) for window in windows}

    def load(self, window: bytes, part: bytes, at: int) -> None:
        start, key = self._named(window)
        numbers = np.frombuffer(part, dtype="<i8").reshape(1, len(self._initial))
        self._groups.put(start, self._groups.rows(start, [key]), numbers)
        self._known.add(window, at)

    def ignore(self, window: bytes, at: int) -> None:
        self._known.add(window, at)

    def _assigned(self, batch: pa.RecordBatch) -> tuple[Numbers, Numbers]:
        """But for the records that a window has already."""
        rows, starts = super()._assigned(batch)
        if self._known:
            keys = batch.column(self._key).to_pylist()
            windows = (self._name(start, keys[row]) for row, start in zip(rows.tolist(), starts.tolist(), strict=True))
            new = self._known.new(windows, self.position - batch.num_rows + 1 + rows)
            rows, starts = rows[new], starts[new]
        return rows, starts

    def _grouped(self, batch: pa.RecordBatch) -> Pairs:
        """Also finds the windows that this opens."""
        found = super()._grouped(batch)
        for start, keys in found.groups:
            self._opened += [(start, key) for key in self._groups.unknown(start, keys)]
        return found

    def _name(self, start: int, key: Any) -> bytes:
        return START.pack(start) + (START.pack(key) if self._key_type == pa.int64() else key.encode())

    def _named(self, window: bytes) -> tuple[int, Any]:
        (start,), key = START.unpack_from(window), window[START.size :]
        return start, START.unpack(key)[0] if self._key_type == pa.int64() else key.decode()
