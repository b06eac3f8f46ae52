"""State that is rows: only ever added, in buckets that are dropped whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from testbed.operators.state import PIECE, BucketT, State

# Buckets that were dropped, and by bucket the rows that were added since.
Added: TypeAlias = tuple[list[BucketT], dict[BucketT, list[pa.RecordBatch]]]
Positions: TypeAlias = npt.NDArray[np.int64]
MOST_CHUNKS = 16


@dataclass
class _Bucket:
    """The rows of one bucket. `told` says how many of them, from the first on, a copy has."""

    chunks: list[pa.RecordBatch] = field(default_factory=list)
    count: int = 0
    told: int = 0


class AppendedRows(State, Generic[BucketT]):
    """The input of a window, slide by slide, and the like. Adding n rows takes time linear in n."""

    def __init__(self) -> None:
        self._buckets: dict[BucketT, _Bucket] = {}
        self._dropped: set[BucketT] = set()

    def add(self, bucket: BucketT, rows: pa.RecordBatch) -> None:
        """Add rows to a bucket, which is there from then on."""
        kept = self._buckets.setdefault(bucket, _Bucket())
        kept.count += rows.num_rows
        kept.chunks.append(rows)
        if len(kept.chunks) > MOST_CHUNKS:
            _merge_small(kept.chunks)

    def drop(self, bucket: BucketT) -> None:
        """Drop a bucket; nothing happens if it is not there."""
        if bucket in self._buckets:
            self._remove(bucket)
            self._dropped.add(bucket)

    def buckets(self) -> list[BucketT]:
        """The buckets that are there, in the order in which they came."""
        return list(self._buckets)

    def rows(self, bucket: BucketT) -> list[pa.RecordBatch]:
        """The rows of a bucket, in the order in which they were added; nothing if it is not there."""
        kept = self._buckets.get(bucket)
        return list(kept.chunks) if kept else []

    def changes(self) -> Added[BucketT]:
        dropped, self._dropped = list(self._dropped), set()
        grown = {bucket: rows for bucket, rows in self._buckets.items() if rows.told < rows.count}
        added = {bucket: [_taken(rows.chunks, np.arange(rows.told, rows.count))] for bucket, rows in grown.items()}
        self._tell_all()
        return dropped, added

    def everything(self) -> Added[BucketT]:
        self._dropped = set()
        self._tell_all()
        return [], {bucket: list(rows.chunks) for bucket, rows in self._buckets.items()}

    def apply(self, changes: Added[BucketT]) -> None:
        dropped, added = changes
        for bucket in dropped:
            self._remove(bucket)
        for bucket, chunks in added.items():
            for rows in chunks:
                self.add(bucket, rows)
        self._tell_all()

    @staticmethod
    def pieces(changes: Added[BucketT]) -> Iterator[Added[BucketT]]:
        dropped, added = changes
        yield dropped, {}
        for bucket, chunks in added.items():
            for rows in chunks:
                for start in range(0, rows.num_rows, PIECE):  # taken: a slice is pickled with all it is a slice of
                    numbers = np.arange(start, min(start + PIECE, rows.num_rows))
                    yield [], {bucket: [_taken([rows], numbers)]}

    def _remove(self, bucket: BucketT) -> None:
        self._buckets.pop(bucket, None)

    def _tell_all(self) -> None:
        for rows in self._buckets.values():
            rows.told = rows.count


class RowState(AppendedRows[BucketT]):
    """Rows that are found by key: one side of a join.

    Finding the matches of n keys takes time linear in n and in the matches.
    """

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key
        self._numbers: dict[BucketT, dict[Any, list[int]]] = {}

    def add(self, bucket: BucketT, rows: pa.RecordBatch) -> None:
        kept, numbers = self._buckets.get(bucket), self._numbers.setdefault(bucket, {})
        for number, key in enumerate(rows.column(self._key).to_pylist(), kept.count if kept else 0):
            numbers.setdefault(key, []).append(number)
        super().add(bucket, rows)

    def matches(self, bucket: BucketT, keys: list[Any]) -> tuple[Positions, pa.RecordBatch | None]:
        """For every pair of a key's position in `keys` and a row with that key: the position, and the row.

        In the order in which the rows were added.
        """
        by_key = self._numbers.get(bucket, {})
        found = [by_key.get(key, []) for key in keys]
        numbers = np.array([number for each in found for number in each], dtype=np.int64)
        if not numbers.size:
            return numbers, None
        order = np.argsort(numbers, kind="stable")
        positions = np.repeat(np.arange(len(keys)), [len(each) for each in found])
        return positions[order], _taken(self.rows(bucket), numbers[order])

    def _remove(self, bucket: BucketT) -> None:
        super()._remove(bucket)
        self._numbers.pop(bucket, None)


def _merge_small(chunks: list[pa.RecordBatch]) -> None:
    """Merge from the end while the last chunk is not much smaller than the one before: about log(rows) chunks stay."""
    while len(chunks) > 1 and chunks[-2].num_rows <= 2 * chunks[-1].num_rows:
        last = chunks.pop()
        chunks[-1] = pa.concat_batches([chunks[-1], last])


def _taken(chunks: list[pa.RecordBatch], numbers: Positions) -> pa.RecordBatch:
    """The rows of these numbers, which ascend: from each chunk its own, since `Table.take` first copies all chunks."""
    starts = np.cumsum([0, *(chunk.num_rows for chunk in chunks)])
    cuts = np.searchsorted(numbers, starts)
    spans = zip(chunks, starts, cuts, cuts[1:], strict=False)
    return pa.concat_batches([chunk.take(pa.array(numbers[a:b] - start)) for chunk, start, a, b in spans if a < b])
