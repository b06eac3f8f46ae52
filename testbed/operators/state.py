"""Operator state: taken in small copies of what changed, and made again from a full copy and the changes after it.

What `changes` and `everything` return shares nothing mutable with the live state, so that it can be written while
the operator goes on: piece by piece, since no other thread goes on while Python pickles one. Values must be picklable
and are never changed in place.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar

from experiments.errors import BadInput

BucketT = TypeVar("BucketT", bound=Hashable)
KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")
# Buckets that were dropped, and by bucket what has changed since: values by their keys, None where one was removed.
Changes: TypeAlias = tuple[list[BucketT], dict[BucketT, dict[KeyT, ValueT | None]]]
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
        """Give a key its value."""
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
        """Every bucket that something was put into and that was not dropped."""
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
