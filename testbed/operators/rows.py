"""State that consists of rows: rows are only added, in buckets that are dropped as a whole."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from testbed.operators.state import PIECE, BucketT, Changes, State

# Buckets that were dropped, and by bucket rows that were added after that.
Piece: TypeAlias = tuple[list[BucketT], dict[BucketT, list[pa.RecordBatch]]]
Positions: TypeAlias = npt.NDArray[np.int64]
MOST_SMALL, LARGE = 16, 1 << 15  # chunks, rows of one that is merged no more
NO_ROW = -1


@dataclass
class _Bucket:
    """The rows of one bucket. Large chunks stay as they are: to merge them would take the slot for long."""

    chunks: list[pa.RecordBatch] = field(default_factory=list)
    large: int = 0
    count: int = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows. About the logarithm of `LARGE` small chunks stay."""
        self.count += rows.num_rows
        self.chunks.append(rows)
        if len(self.chunks) - self.large > MOST_SMALL:
            self._merge()

    def _merge(self) -> None:
        """Merge the last chunks: each that is not much larger than those after it together."""
        chunks, begin = self.chunks, len(self.chunks) - 1
        size = chunks[begin].num_rows
        while begin > self.large and chunks[begin - 1].num_rows <= 2 * size:
            begin -= 1
            size += chunks[begin].num_rows
        chunks[begin:] = [pa.concat_batches(chunks[begin:])]
        while self.large < len(chunks) and chunks[self.large].num_rows >= LARGE:
            self.large += 1


@dataclass
class _Added(Changes, Generic[BucketT]):
    """Buckets that were dropped, then rows that were added: slices of what the state holds, which never changes."""

    dropped: set[BucketT]
    added: dict[BucketT, list[pa.RecordBatch]]

    @property
    def size(self) -> int:  # type: ignore[override]
        added: int = sum(rows.num_rows for chunks in self.added.values() for rows in chunks)
        return len(self.dropped) + added

    def pieces(self) -> Iterator[Piece[BucketT]]:
        yield list(self.dropped), {}
        for bucket, chunks in self.added.items():
            for rows in chunks:
                for start in range(0, rows.num_rows, PIECE):  # taken: a slice is pickled with all it is a slice of
                    numbers = np.arange(start, min(start + PIECE, rows.num_rows))
                    yield [], {bucket: [_taken([rows], numbers)]}


class AppendedRows(State, Generic[BucketT]):
    """The input of a window, slide by slide, and the like. Adding n rows takes time linear in n."""

    def __init__(self) -> None:
        super().__init__()
        self._buckets: dict[BucketT, _Bucket] = {}
        self._dropped: set[BucketT] = set()
        self._ended: list[_End[BucketT]] = []

    def add(self, bucket: BucketT, rows: pa.RecordBatch) -> None:
        """Add rows to a bucket, which is there from then on."""
        self._buckets.setdefault(bucket, _Bucket()).add(rows)

    def drop(self, bucket: BucketT) -> None:
        """Drop a bucket; nothing happens if it is not there."""
        if self._buckets.pop(bucket, None) is not None:
            if self.sizes:  # else nothing of it was ever taken
                self._dropped.add(bucket)
            for end in self._ended:
                end.counts.pop(bucket, None)

    def buckets(self) -> list[BucketT]:
        """The buckets that are there, in the order in which they came."""
        return list(self._buckets)

    def rows(self, bucket: BucketT) -> list[pa.RecordBatch]:
        """The rows of a bucket, in the order in which they were added; nothing if it is not there."""
        kept = self._buckets.get(bucket)
        return list(kept.chunks) if kept else []

    @property
    def changed(self) -> int:
        counts = self._ended[-1].counts if self._ended else {}
        added = sum(rows.count - counts.get(bucket, 0) for bucket, rows in self._buckets.items())
        return added + len(self._dropped)

    def apply(self, piece: Piece[BucketT]) -> None:
        dropped, added = piece
        for bucket in dropped:
            self.drop(bucket)
        for bucket, chunks in added.items():
            for rows in chunks:
                self.add(bucket, rows)

    def content(self) -> dict[BucketT, dict[str, list[Any]]]:
        return {
            bucket: pa.Table.from_batches(rows.chunks).to_pydict()
            for bucket, rows in self._buckets.items()
            if rows.count
        }

    def _everything(self) -> _Added[BucketT]:
        return _Added(set(), {bucket: list(rows.chunks) for bucket, rows in self._buckets.items()})

    def _changed_after(self, after: int) -> _Added[BucketT]:
        counts = self._ended[after - 1].counts
        dropped = self._dropped.union(*(end.dropped for end in self._ended[after:]))
        grown = {bucket: rows for bucket, rows in self._buckets.items() if rows.count > counts.get(bucket, 0)}
        return _Added(dropped, {each: _from(rows.chunks, counts.get(each, 0)) for each, rows in grown.items()})

    def _end_span(self, after: int, changes: Changes | None) -> None:
        dropped = changes.dropped if isinstance(changes, _Added) else set()
        self._ended[after:] = [_End(dropped, {bucket: rows.count for bucket, rows in self._buckets.items()})]
        self._dropped = set()


@dataclass
class _End(Generic[BucketT]):
    """The end of a span: which buckets were dropped in it, and how many rows each bucket had that is still there."""

    dropped: set[BucketT]
    counts: dict[BucketT, int]


@dataclass
class _Chains:
    """Which rows have a key: the last one by key, and before each row the one before it with its key."""

    last: dict[Any, int] = field(default_factory=dict)
    before: array[int] = field(default_factory=lambda: array("q"))

    def add(self, keys: list[Any]) -> None:
        """More rows, with these keys."""
        last, append, get = self.last, self.before.append, self.last.get
        for number, key in enumerate(keys, len(self.before)):
            append(get(key, NO_ROW))
            last[key] = number


class RowState(AppendedRows[BucketT]):
    """Rows that are found by key: one side of a join.

    Finding the matches of n keys takes time linear in n and in the matches.
    """

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key
        self._chains: dict[BucketT, _Chains] = {}

    def add(self, bucket: BucketT, rows: pa.RecordBatch) -> None:
        self._chains.setdefault(bucket, _Chains()).add(rows.column(self._key).to_pylist())
        super().add(bucket, rows)

    def drop(self, bucket: BucketT) -> None:
        super().drop(bucket)
        self._chains.pop(bucket, None)

    def matches(self, bucket: BucketT, keys: list[Any]) -> tuple[Positions, pa.RecordBatch | None]:
        """For every pair of a key's position in `keys` and a row with that key: the position, and the row.

        In the order in which the rows were added.
        """
        chains = self._chains.get(bucket)
        if chains is None:
            return np.empty(0, dtype=np.int64), None
        numbers, positions = list[int](), list[int]()
        last, before = chains.last.get, chains.before
        for position, key in enumerate(keys):
            number = last(key, NO_ROW)
            while number != NO_ROW:
                numbers.append(number)
                positions.append(position)
                number = before[number]
        if not numbers:
            return np.empty(0, dtype=np.int64), None
        found = np.array(numbers)
        order = np.argsort(found, kind="stable")
        return np.array(positions)[order], _taken(self.rows(bucket), found[order])


def _from(chunks: list[pa.RecordBatch], start: int) -> list[pa.RecordBatch]:
    """The rows from a number on."""
    found = []
    for chunk in chunks:
        if start < chunk.num_rows:
            found.append(chunk.slice(max(start, 0)))
        start -= chunk.num_rows
    return found


def _taken(chunks: list[pa.RecordBatch], numbers: Positions) -> pa.RecordBatch:
    """The rows of these numbers, which ascend: from each chunk its own, since `Table.take` first copies all chunks."""
    starts = np.cumsum([0, *(chunk.num_rows for chunk in chunks)])
    cuts = np.searchsorted(numbers, starts)
    spans = zip(chunks, starts, cuts, cuts[1:], strict=False)
    return pa.concat_batches([chunk.take(pa.array(numbers[a:b] - start)) for chunk, start, a, b in spans if a < b])
