"""State of some int64 numbers for each key, in columns, for aggregates by key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Generic, TypeAlias

import numpy as np
import numpy.typing as npt

from testbed.operators.state import PIECE, BucketT, Changes, KeyT, State

Numbers: TypeAlias = npt.NDArray[np.int64]
# Buckets that were dropped, and by bucket keys with their numbers after that.
Piece: TypeAlias = tuple[list[BucketT], dict[BucketT, tuple[npt.NDArray[Any], Numbers]]]
FEWEST_ROWS, UNKNOWN = 16, -1


class _Table(Generic[KeyT]):
    """The keys of one bucket. A key has a row, which has its numbers, and the span in which they last changed.

    Rows are only added, so that the keys of the first n of them stay the same: what was taken shares them.
    """

    def __init__(self, initial: Numbers, key_type: npt.DTypeLike) -> None:
        self._initial = initial
        self._row_of: dict[KeyT, int] = {}
        self.count = 0
        self.keys = np.zeros(FEWEST_ROWS, dtype=key_type)
        self.numbers = np.zeros((FEWEST_ROWS, initial.size), dtype=np.int64)
        self.spans = np.zeros(FEWEST_ROWS, dtype=np.int32)

    def known(self, keys: Sequence[KeyT]) -> Numbers:
        """The rows of these keys, `UNKNOWN` for those without."""
        return np.fromiter(map(self._row_of.get, keys, repeat(UNKNOWN)), dtype=np.int64, count=len(keys))

    def rows(self, keys: Sequence[KeyT]) -> Numbers:
        """The rows of these keys, which are all different; new ones get a row with the initial numbers."""
        found = self.known(keys)
        new = np.flatnonzero(found == UNKNOWN)
        if new.size:
            begin, self.count = self.count, self.count + new.size
            self._make_room()
            names = [keys[at] for at in new.tolist()]
            self._row_of.update(zip(names, range(begin, self.count), strict=True))
            self.keys[begin : self.count] = names
            self.numbers[begin : self.count] = self._initial
            found[new] = np.arange(begin, self.count)
        return found

    def _make_room(self) -> None:
        if self.count > len(self.keys):
            room = max(self.count, 2 * len(self.keys))
            for name in ("keys", "numbers", "spans"):
                before = getattr(self, name)
                after = np.zeros((room, *before.shape[1:]), dtype=before.dtype)
                after[: len(before)] = before
                setattr(self, name, after)


@dataclass(frozen=True)
class _Taken:
    """Some rows of a bucket, None if it was all of them: the keys of all its rows, and the numbers of these."""

    rows: Numbers | None
    keys: npt.NDArray[Any]
    numbers: Numbers

    def slices(self) -> Iterator[tuple[npt.NDArray[Any], Numbers]]:
        """Keys with their numbers, some at a time."""
        for start in range(0, len(self.numbers), PIECE):
            some = slice(start, start + PIECE)
            yield self.keys[some] if self.rows is None else self.keys[self.rows[some]], self.numbers[some]


@dataclass
class _Changed(Changes, Generic[BucketT]):
    """Buckets that were dropped, then the numbers that keys got."""

    dropped: set[BucketT]
    put: dict[BucketT, _Taken]

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.dropped) + sum(len(taken.numbers) for taken in self.put.values())

    def pieces(self) -> Iterator[Piece[BucketT]]:
        yield list(self.dropped), {}
        for bucket, taken in self.put.items():
            for some in taken.slices():
                yield [], {bucket: some}


class KeyedColumns(State, Generic[BucketT, KeyT]):
    """Some numbers for each key, in buckets that can be dropped whole.

    What changed is found by the span in which each row last did. That takes a nanosecond or two for each row that is
    there, besides some for each that changed.
    """

    def __init__(self, initial: Sequence[int], key_type: npt.DTypeLike) -> None:
        """`initial`: the numbers of a key that has not got any; `key_type`: int64, or object for any other keys."""
        super().__init__()
        self._initial, self._key_type = np.array(initial, dtype=np.int64), key_type
        self._tables: dict[BucketT, _Table[KeyT]] = {}
        self._open = 0  # the number of the span under way
        self._begins: list[int] = []  # with which one begins each span that has ended
        self._dropped: list[set[BucketT]] = [set()]  # in each span that has ended, and the one under way

    def rows(self, bucket: BucketT, keys: Sequence[KeyT]) -> Numbers:
        """The rows of these keys, which are all different; new ones get a row with the initial numbers."""
        table = self._tables.get(bucket)
        if table is None:
            table = self._tables[bucket] = _Table(self._initial, self._key_type)
        return table.rows(keys)

    def numbers(self, bucket: BucketT, rows: Numbers) -> Numbers:
        """The numbers in these rows."""
        found: Numbers = self._tables[bucket].numbers[rows]
        return found

    def put(self, bucket: BucketT, rows: Numbers, numbers: Numbers) -> None:
        """Give rows their numbers."""
        table = self._tables[bucket]
        table.numbers[rows] = numbers
        table.spans[rows] = self._open

    def unknown(self, bucket: BucketT, keys: Sequence[KeyT]) -> list[KeyT]:
        """Those of the keys that have no row."""
        table = self._tables.get(bucket)
        if table is None:
            return list(keys)
        return [keys[at] for at in np.flatnonzero(table.known(keys) == UNKNOWN).tolist()]

    def get(self, bucket: BucketT, key: KeyT) -> tuple[int, ...] | None:
        """The numbers of a key, None if it has no row."""
        if self.unknown(bucket, [key]):
            return None
        return tuple(self.numbers(bucket, self.rows(bucket, [key]))[0].tolist())

    def keys(self, bucket: BucketT) -> list[KeyT]:
        """Every key of a bucket, in the order in which they came."""
        table = self._tables.get(bucket)
        return table.keys[: table.count].tolist() if table else []

    def drop(self, bucket: BucketT) -> tuple[list[KeyT], Numbers]:
        """Drop a bucket, which must be there; returns what was in it."""
        table, keys = self._tables[bucket], self.keys(bucket)
        self._remove(bucket)
        return keys, table.numbers[: table.count]

    def buckets(self) -> list[BucketT]:
        """Every bucket that something was put into and that was not dropped."""
        return list(self._tables)

    @property
    def changed(self) -> int:
        tables = self._tables.values()
        put = sum(np.count_nonzero(each.spans[: each.count] == self._open) for each in tables)
        return int(put) + len(self._dropped[-1])

    def apply(self, piece: Piece[BucketT]) -> None:
        dropped, put = piece
        for bucket in dropped:
            self._remove(bucket)
        for bucket, (keys, numbers) in put.items():
            self.put(bucket, self.rows(bucket, keys.tolist()), numbers)

    def content(self) -> dict[BucketT, dict[KeyT, list[int]]]:
        found = {bucket: (self.keys(bucket), table) for bucket, table in self._tables.items()}
        return {
            bucket: dict(zip(keys, table.numbers[: table.count].tolist(), strict=True))
            for bucket, (keys, table) in found.items()
        }

    def _remove(self, bucket: BucketT) -> None:
        self._tables.pop(bucket, None)
        if self.sizes:  # else nothing of it was ever taken
            self._dropped[-1].add(bucket)

    def _everything(self) -> _Changed[BucketT]:
        tables = self._tables.items()
        return _Changed(
            set(), {b: _Taken(None, each.keys[: each.count], each.numbers[: each.count].copy()) for b, each in tables}
        )

    def _changed_after(self, after: int) -> _Changed[BucketT]:
        since = self._begins[after] if after < len(self._begins) else self._open
        changed = {bucket: self._since(table, since) for bucket, table in self._tables.items()}
        put = {bucket: taken for bucket, taken in changed.items() if len(taken.numbers)}
        return _Changed(set().union(*self._dropped[after:]), put)

    def _since(self, table: _Table[KeyT], span: int) -> _Taken:
        rows = np.flatnonzero(table.spans[: table.count] >= span)
        return _Taken(rows, table.keys, table.numbers[rows])

    def _end_span(self, after: int, changes: Changes | None) -> None:
        begin = self._begins[after] if after < len(self._begins) else self._open
        self._begins[after:] = [begin]
        self._dropped[after:] = [changes.dropped if isinstance(changes, _Changed) else set(), set()]
        self._open += 1
