"""Operator state: taken in small copies of what changed, and made again from a full copy and the changes after it.

What `changes` and `everything` return shares nothing mutable with the live state, so that it can be written while
the operator goes on: piece by piece, since no other thread goes on while Python pickles one. Values must be picklable
and are never changed in place.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.errors import BadInput

BucketT = TypeVar("BucketT", bound=Hashable)
KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")
# Buckets that were dropped, and by bucket what has changed since: values by their keys, None where one was removed; or
# the rows that were added.
Changes: TypeAlias = tuple[list[BucketT], dict[BucketT, dict[KeyT, ValueT | None]]]
Added: TypeAlias = tuple[list[BucketT], dict[BucketT, list[pa.RecordBatch]]]
Positions = npt.NDArray[np.int64]
MOST_CHUNKS = 16
PIECE = 1 << 16  # values or rows: small ones are pickled in 20 ms; a thread that is busy may take as long to let go


class State(ABC):
    """A part of an operator's state."""

    @abstractmethod
    def changes(self) -> Any:
        """What changed since the last call of `changes` or `everything`."""

    @abstractmethod
    def everything(self) -> Any:
        """All of it: changes to an empty state."""

    @abstractmethod
    def apply(self, changes: Any) -> None:
        """Make the changes that another state returned."""

    @staticmethod
    @abstractmethod
    def pieces(changes: Any) -> Iterator[Any]:
        """The changes in small parts, which are applied one after the other."""


class KeyedState(State, Generic[BucketT, KeyT, ValueT]):
    """A value for each key, in buckets that can be dropped whole. None is no value."""

    def __init__(self) -> None:
        self._buckets: dict[BucketT, dict[KeyT, ValueT]] = {}
        self._touched: dict[BucketT, set[KeyT]] = {}
        self._dropped: set[BucketT] = set()

    def get(self, bucket: BucketT, key: KeyT) -> ValueT | None:
        """The value, None if there is none."""
        values = self._buckets.get(bucket)
        return values.get(key) if values else None

    def get_all(self, bucket: BucketT, keys: Iterable[KeyT]) -> list[ValueT | None]:
        """The values of these keys, None for those without."""
        values = self._buckets.get(bucket, {})
        return [values.get(key) for key in keys]

    def put(self, bucket: BucketT, key: KeyT, value: ValueT) -> None:
        self.put_all(bucket, [key], [value])

    def put_all(self, bucket: BucketT, keys: Sequence[KeyT], values: Sequence[ValueT]) -> None:
        """Give each of the keys its value."""
        self._buckets.setdefault(bucket, {}).update(zip(keys, values, strict=True))
        self._touched.setdefault(bucket, set()).update(keys)

    def remove(self, bucket: BucketT, key: KeyT) -> None:
        """Remove a key; nothing happens if it is not there."""
        if self._buckets.get(bucket, {}).pop(key, None) is not None:
            self._touched.setdefault(bucket, set()).add(key)

    def items(self, bucket: BucketT) -> list[tuple[KeyT, ValueT]]:
        """Every key of a bucket with its value."""
        return list(self._buckets.get(bucket, {}).items())

    def drop(self, bucket: BucketT) -> dict[KeyT, ValueT]:
        """Drop a bucket; returns what was in it."""
        self._touched.pop(bucket, None)
        self._dropped.add(bucket)
        return self._buckets.pop(bucket, {})

    def buckets(self) -> list[BucketT]:
        return list(self._buckets)

    def changes(self) -> Changes[BucketT, KeyT, ValueT]:
        dropped, touched, self._dropped, self._touched = list(self._dropped), self._touched, set(), {}
        kept = {bucket: self._buckets.get(bucket, {}) for bucket in touched}
        return dropped, {bucket: {key: kept[bucket].get(key) for key in keys} for bucket, keys in touched.items()}

    def everything(self) -> Changes[BucketT, KeyT, ValueT]:
        self._dropped, self._touched = set(), {}
        return [], {bucket: dict(values) for bucket, values in self._buckets.items()}

    def apply(self, changes: Changes[BucketT, KeyT, ValueT]) -> None:
        dropped, put = changes
        for bucket in dropped:
            self._buckets.pop(bucket, None)
        for bucket, values in put.items():
            kept = self._buckets.setdefault(bucket, {})
            kept.update({key: value for key, value in values.items() if value is not None})
            for key in [key for key, value in values.items() if value is None]:
                kept.pop(key, None)

    @staticmethod
    def pieces(changes: Changes[BucketT, KeyT, ValueT]) -> Iterator[Changes[BucketT, KeyT, ValueT]]:
        dropped, put = changes
        piece: dict[BucketT, dict[KeyT, ValueT | None]] = {}
        room = PIECE
        for bucket, values in put.items():
            entries = iter(values.items())
            while some := dict(islice(entries, room)):
                piece[bucket], room = some, room - len(some)
                if not room:
                    yield dropped, piece
                    dropped, piece, room = [], {}, PIECE
        yield dropped, piece


@dataclass
class _Rows:
    """The rows of one bucket. `told` says how many of them, from the first on, a copy has."""

    chunks: list[pa.RecordBatch] = field(default_factory=list)
    numbers: dict[Any, list[int]] = field(default_factory=dict)  # by key
    count: int = 0
    told: int = 0


class RowState(State, Generic[BucketT]):
    """Rows that are only ever added, in buckets that are dropped whole, found by key: one side of a join.

    Adding n rows and finding the matches of n keys is linear in n, and in the matches.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._buckets: dict[BucketT, _Rows] = {}
        self._dropped: set[BucketT] = set()

    def add(self, bucket: BucketT, rows: pa.RecordBatch) -> None:
        kept = self._buckets.setdefault(bucket, _Rows())
        for number, key in enumerate(rows.column(self._key).to_pylist(), kept.count):
            kept.numbers.setdefault(key, []).append(number)
        kept.count += rows.num_rows
        kept.chunks.append(rows)
        if len(kept.chunks) > MOST_CHUNKS:
            _merge_small(kept.chunks)

    def drop(self, bucket: BucketT) -> None:
        """Drop a bucket; nothing happens if it is not there."""
        if self._buckets.pop(bucket, None) is not None:
            self._dropped.add(bucket)

    def buckets(self) -> list[BucketT]:
        return list(self._buckets)

    def matches(self, bucket: BucketT, keys: list[Any]) -> tuple[Positions, pa.RecordBatch | None]:
        """For every pair of a key's position in `keys` and a row with that key: the position, and the row.

        In the order in which the rows were added.
        """
        kept = self._buckets.get(bucket, _Rows())
        found = [kept.numbers.get(key, []) for key in keys]
        numbers = np.array([number for each in found for number in each], dtype=np.int64)
        if not numbers.size:
            return numbers, None
        order = np.argsort(numbers, kind="stable")
        positions = np.repeat(np.arange(len(keys)), [len(each) for each in found])
        return positions[order], _taken(kept.chunks, numbers[order])

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
            self._buckets.pop(bucket, None)
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

    def _tell_all(self) -> None:
        for rows in self._buckets.values():
            rows.told = rows.count


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


def encode_state(owner: str, content: object) -> bytes:
    """The bytes of a part of a state. Raises `BadInput` naming its owner if a value in it can't be serialised."""
    try:
        return pickle.dumps(content, protocol=5)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"state of {owner}", str(error), "values that pickle can serialise") from error


def decode_state(data: bytes) -> Iterator[Any]:
    """The parts that `encode_state` made bytes of, one after the other."""
    rest = BytesIO(data)
    while rest.tell() < len(data):
        yield pickle.load(rest)
