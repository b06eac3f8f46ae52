"""Averages over a fixed number of records by key: the operator of `cec`, section IV."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.errors import BadInput
from testbed.operators.interface import require_column
from testbed.operators.keyed_state import KeyedState
from testbed.operators.parts import ENTRIES, TOGETHER, EntryKind, Footprints, Known, Parted
from testbed.operators.state import State

AVERAGE = "average"
ALL = 0  # the only bucket of the state
KEY, PART = struct.Struct("<q"), struct.Struct("<qq")

Numbers = npt.NDArray[np.int64]


class CountWindows(Parted):
    """The average of `value` over every `size` records of a key, in the order in which they come.

    A window closes with its last record. Then the operator emits the key, the columns `of_last` of that record, and the
    average. The key's next record opens a window again, so a window goes by its key. All columns are int64.
    """

    together = TOGETHER

    def __init__(self, key: str, value: str, size: int, of_last: tuple[str, ...]) -> None:
        if size < 1:
            raise BadInput("size", size, "1 record or more")
        self.keys, self._key, self._value, self._size, self._of_last = (key,), key, value, size, of_last

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        (given,) = inputs
        of_last = (("of_last", each) for each in self._of_last)
        for field, column in (("key", self._key), ("value", self._value), *of_last):
            require_column(field, given, column, pa.int64())
        numbers = ((name, pa.int64()) for name in (self._key, *self._of_last))
        self._schema = pa.schema([*numbers, (AVERAGE, pa.float64())])
        return self._schema

    def open(self) -> None:
        self._windows: KeyedState[int, int, tuple[int, int]] = KeyedState()  # by key: how many records, their sum
        self._known = Known()
        self.position = 0
        self._step: _Step | None = None

    def states(self) -> dict[str, State]:
        return {"windows": self._windows}

    def process(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        positions = self.position + 1 + np.arange(batch.num_rows)
        self.position += batch.num_rows
        self._step = None
        if self._known:
            new = self._known.new(map(KEY.pack, batch.column(self._key).to_pylist()), positions)
            batch, positions = batch.filter(pa.array(new)), positions[new]
            self._known.forget_at(self.position)
        if not batch.num_rows:
            return None
        keys, values = (batch.column(each).to_numpy() for each in (self._key, self._value))
        groups = _grouped(keys)
        known = np.array([each or (0, 0) for each in self._windows.get_all(ALL, groups.keys.tolist())], dtype=np.int64)
        counted = _counted(groups, values, known, self._size)
        self._put(groups, counted)
        self._step = _Step(groups, counted, keys, positions, known)
        return self._closed(batch, keys, counted)

    def _put(self, groups: _Groups, counted: _Counted) -> None:
        """The state after the last record of each key."""
        counts, totals = counted.counts[groups.last], counted.totals[groups.last]
        stay = counts < self._size
        values = list(zip(counts[stay].tolist(), totals[stay].tolist(), strict=True))
        self._windows.put_all(ALL, groups.keys[stay].tolist(), values)
        for key in groups.keys[~stay].tolist():
            self._windows.remove(ALL, key)

    def _closed(self, batch: pa.RecordBatch, keys: Numbers, counted: _Counted) -> pa.RecordBatch | None:
        rows = np.flatnonzero(counted.in_order(counted.counts) == self._size)
        if not rows.size:
            return None
        averages = counted.in_order(counted.totals)[rows] / self._size
        of_last = (batch.column(each).to_numpy()[rows] for each in self._of_last)
        columns = keys[rows], *of_last, averages
        return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=self._schema)

    def advance(self, watermark_ns: int) -> None:
        """Event time closes no window."""
        self._step = None

    def footprints(self) -> Footprints:
        return Footprints() if self._step is None else _footprints(self._step, self._size)

    def part(self, window: bytes) -> bytes:
        found = self._windows.get(ALL, *KEY.unpack(window))
        if found is None:
            raise KeyError(window)
        return PART.pack(*found)

    def parts_of(self, windows: Iterable[bytes]) -> list[bytes]:
        keys = np.frombuffer(b"".join(windows), dtype="<i8").tolist()
        found = self._windows.get_all(ALL, keys)
        if None in found:
            raise KeyError(KEY.pack(keys[found.index(None)]))
        return [PART.pack(*each) for each in found if each is not None]

    def parts(self) -> dict[bytes, bytes]:
        return {KEY.pack(key): PART.pack(*found) for key, found in self._windows.items(ALL)}

    def load(self, window: bytes, part: bytes, at: int) -> None:
        (key,), (count, total) = KEY.unpack(window), PART.unpack(part)
        self._windows.put(ALL, key, (count, total))
        self._known.add(window, at)

    def load_all(self, windows: Sequence[bytes], parts: Sequence[bytes], at: Sequence[int]) -> None:
        if windows:
            keys, counts = (np.frombuffer(b"".join(each), dtype="<i8") for each in (windows, parts))
            values = zip(counts[::2].tolist(), counts[1::2].tolist(), strict=True)
            self._windows.put_all(ALL, keys.tolist(), list(values))
            self._known.add_all(windows, at)

    def ignore(self, window: bytes, at: int) -> None:
        self._known.add(window, at)


@dataclass(frozen=True)
class _Groups:
    """The records of a batch, sorted by key; those of a key keep their order.

    order         where the sorted records were
    keys          the key of each group; first, last: where the group begins and ends
    group         of each sorted record the group's number
    """

    order: Numbers
    keys: Numbers
    first: Numbers
    last: Numbers
    group: Numbers


@dataclass(frozen=True)
class _Counted:
    """For each record, sorted by key: its place in its window, from 1, and the sum of the window up to it.

    start   the first record of its window in this batch
    """

    order: Numbers
    counts: Numbers
    totals: Numbers
    start: Numbers

    def in_order(self, column: Numbers) -> Numbers:
        """A column in the order in which the records came."""
        found = np.empty_like(column)
        found[self.order] = column
        return found


@dataclass(frozen=True)
class _Step:
    """What a batch did, from which its footprints are made if somebody asks for them.

    keys, positions   of each record, in the order in which they came
    known             for each group's key how many records its window had before the batch, and their sum
    """

    groups: _Groups
    counted: _Counted
    keys: Numbers
    positions: Numbers
    known: Numbers


def _grouped(keys: Numbers) -> _Groups:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    first = np.flatnonzero(starts)
    last = np.concatenate((first[1:], [keys.size])) - 1
    return _Groups(order, ordered[first], first, last, np.cumsum(starts) - 1)


def _counted(groups: _Groups, values: Numbers, known: Numbers, size: int) -> _Counted:
    """`known`: for each group's key how many records its window had before the batch, and their sum."""
    values, numbers = values[groups.order], np.arange(values.size)
    counts = (known[groups.group, 0] + numbers - groups.first[groups.group]) % size + 1
    begins = counts == 1
    begins[groups.first] = True
    sums = np.cumsum(values)
    behind = sums - values  # where a window begins: what the sums have that it has not
    behind[groups.first] -= known[:, 1]
    start = np.maximum.accumulate(np.where(begins, numbers, 0))
    return _Counted(groups.order, counts, sums - behind[start], start)


def _footprints(step: _Step, size: int) -> Footprints:
    groups, counted, keys, positions = step.groups, step.counted, step.keys, step.positions
    counts = counted.in_order(counted.counts)
    opens, closes = np.flatnonzero(counts == 1), np.flatnonzero(counts == size)
    rows = np.concatenate((opens, closes))
    order = np.argsort(np.concatenate((2 * opens, 2 * closes + 1)), kind="stable")
    is_open = order < opens.size
    parts = np.column_stack((np.ones_like(opens), counted.in_order(counted.totals)[opens]))
    columns = [
        pa.array(np.where(is_open, np.uint8(EntryKind.OPEN), np.uint8(EntryKind.RESULT))),
        pa.array(positions[rows[order]]),
        _binary(keys[rows[order]], np.full(order.size, KEY.size)),
        _binary(parts, np.where(is_open, PART.size, 0)),
    ]
    number_of = np.empty_like(order)
    number_of[order] = np.arange(order.size)
    ends = counted.counts[groups.last] == size
    opened = ~ends & (counted.counts[counted.start[groups.last]] == 1)
    entries = number_of[np.searchsorted(opens, groups.order[counted.start[groups.last[opened]]])]
    left = sorted(zip(entries.tolist(), groups.keys[opened].tolist(), strict=True))
    return Footprints(
        pa.RecordBatch.from_arrays(columns, schema=ENTRIES),
        {KEY.pack(key): entry for entry, key in left},
        [KEY.pack(key) for key in groups.keys[ends & (step.known[:, 0] > 0)].tolist()],
    )


def _binary(numbers: Numbers, lengths: Numbers) -> pa.Array:
    """The bytes of all numbers, cut into values of these lengths."""
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    data = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.binary(), lengths.size, [None, pa.py_buffer(offsets), data])
