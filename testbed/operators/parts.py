"""Operator state in parts: one for each window, which is saved and loaded by itself (`cec`, section II-B).

A position is the number of records that the operator has read, which is what the paper calls a time. The part of
a window at position t is its state after the first t records.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from testbed.operators.interface import Operator

Positions = npt.NDArray[np.int64]
NO_WINDOW = b""
TOGETHER = 64  # parts of a few numbers that are saved between two looks at the clock: some .2 ms


class EntryKind(IntEnum):
    """What an entry of an output log says of a window.

    RESULT   a row was emitted. If the entry names a window, the row closed it; otherwise it closed none
    OPEN     a window opened: its part, which the record that opened it is in
    CHECK    the part of a window that had opened before
    CLOSE    a window closed without a row
    """

    RESULT = 1
    OPEN = 2
    CHECK = 3
    CLOSE = 4


ENTRIES = pa.schema([("kind", pa.uint8()), ("at", pa.int64()), ("window", pa.binary()), ("part", pa.binary())])
NO_ENTRIES = pa.RecordBatch.from_pylist([], schema=ENTRIES)


@dataclass(frozen=True)
class Footprints:
    """What happened to the windows of an operator, in order.

    entries   of schema `ENTRIES`. Positions never decrease
    left      the entry, by its number from 0, of each window that opened and is open now; in the order of the entries
    gone      windows that were open before and are not now
    """

    entries: pa.RecordBatch = field(default_factory=lambda: NO_ENTRIES)
    left: dict[bytes, int] = field(default_factory=dict)
    gone: Sequence[bytes] = ()


class Parted(Operator):
    """An operator whose state consists of windows.

    position   how many records it has read
    together   how many of its parts may be saved at once: more than one only if each has a few numbers
    """

    position: int
    together = 1

    @abstractmethod
    def footprints(self) -> Footprints:
        """What the last call of `process` or `advance` did. Each row that it returned has one entry, in their order."""

    @abstractmethod
    def part(self, window: bytes) -> bytes:
        """The part of an open window, now. Raises `KeyError` if the window is not open."""

    def parts_of(self, windows: Iterable[bytes]) -> list[bytes]:
        """The parts of open windows, now. Raises `KeyError` if one is not open."""
        return [self.part(window) for window in windows]

    @abstractmethod
    def parts(self) -> dict[bytes, bytes]:
        """The part of every open window, now."""

    @abstractmethod
    def load(self, window: bytes, part: bytes, at: int) -> None:
        """Open a window with the part that it had at a position. Its records up to there will be ignored."""

    def load_all(self, windows: Sequence[bytes], parts: Sequence[bytes], at: Sequence[int]) -> None:
        """Load many windows."""
        for each in zip(windows, parts, at, strict=True):
            self.load(*each)

    @abstractmethod
    def ignore(self, window: bytes, at: int) -> None:
        """The records of a window up to a position will be ignored: it has closed there."""

    def resume(self, position: int) -> None:
        """The record after this position comes next. Some windows may have it, or some that follow, already."""
        self.position = position


class Known:
    """Which records a restored operator has in its windows already, so that they are ignored when they come again."""

    def __init__(self) -> None:
        self._until: dict[bytes, int] = {}
        self._last = 0

    def add(self, window: bytes, at: int) -> None:
        """The window has its records up to a position."""
        self._until[window] = at
        self._last = max(at, self._last)

    def add_all(self, windows: Sequence[bytes], at: Sequence[int]) -> None:
        """Each window has its records up to the position at the same index."""
        self._until.update(zip(windows, at, strict=True))
        self._last = max(self._last, *at)

    def forget_at(self, position: int) -> None:
        """The operator is at this position. If no window has seen more than that, all records from now on are new."""
        if position >= self._last:
            self._until.clear()

    def __bool__(self) -> bool:
        return bool(self._until)

    def new(self, windows: Iterable[bytes], positions: Positions) -> npt.NDArray[np.bool_]:
        """For each pair of a window and a record's position whether the window lacks the record.

        The paper ignores what is before t_i. That takes the record at t_i twice, since the part has it: section III.
        """
        until = np.fromiter((self._until.get(window, 0) for window in windows), dtype=np.int64, count=positions.size)
        return positions > until


class Recorder:
    """Entries one by one, for operators that don't make whole columns of them."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, bytes, bytes]]
        self._left: dict[bytes, int]
        self._gone: list[bytes]
        self.begin()

    def opened(self, window: bytes, at: int, part: bytes) -> None:
        """A window was opened at a position; `part` is what it holds."""
        self._left[window] = len(self._rows)
        self._rows.append((EntryKind.OPEN, at, window, part))

    def closed(self, window: bytes, at: int, kind: EntryKind = EntryKind.CLOSE) -> None:
        """A window has closed: by itself, or with a row that was emitted (`RESULT`)."""
        if self._left.pop(window, None) is None:
            self._gone.append(window)
        self._rows.append((kind, at, window, b""))

    def emitted(self, at: int, rows: int) -> None:
        """`rows` rows were emitted that closed no window."""
        self._rows += [(EntryKind.RESULT, at, NO_WINDOW, b"")] * rows

    def begin(self) -> None:
        """Forget what was recorded."""
        self._rows, self._left, self._gone = [], {}, []

    def footprints(self) -> Footprints:
        """What was recorded since `begin`."""
        rows, left, gone = self._rows, self._left, self._gone
        return Footprints(entries_of(rows), left, gone)


def entries_of(rows: Iterable[tuple[int, int, bytes, bytes]]) -> pa.RecordBatch:
    """Entries by kind, position, window and part."""
    rows = list(rows)
    columns = [pa.array([row[number] for row in rows], each.type) for number, each in enumerate(ENTRIES)]
    return pa.RecordBatch.from_arrays(columns, schema=ENTRIES)


def checks_of(at: int, windows: Sequence[bytes], parts: Sequence[bytes]) -> pa.RecordBatch:
    """Entries that say what these windows hold at a position."""
    kinds, positions = np.full(len(windows), EntryKind.CHECK, np.uint8), np.full(len(windows), at)
    columns = [pa.array(kinds), pa.array(positions), pa.array(windows, pa.binary()), pa.array(parts, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=ENTRIES)
