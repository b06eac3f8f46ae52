"""State that has a value of any type for each key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeAlias

from testbed.operators.state import PIECE, BucketT, Changes, KeyT, State, ValueT

# Buckets that were dropped; by bucket the values of keys after that, None where one was removed.
Piece: TypeAlias = tuple[list[BucketT], dict[BucketT, dict[KeyT, ValueT | None]]]


@dataclass
class _Span(Changes, Generic[BucketT, KeyT, ValueT]):
    """What changed in a span: first buckets were dropped, then keys got these values, None where one was removed."""

    dropped: set[BucketT] = field(default_factory=set)
    put: dict[BucketT, dict[KeyT, ValueT | None]] = field(default_factory=dict)

    @property
    def size(self) -> int:  # type: ignore[override]
        return sum(map(len, self.put.values())) + len(self.dropped)

    def pieces(self) -> Iterator[Piece[BucketT, KeyT, ValueT]]:
        dropped, piece, room = list(self.dropped), {}, PIECE
        for bucket, values in self.put.items():
            entries = iter(values.items())
            while some := dict(islice(entries, room)):
                piece[bucket], room = some, room - len(some)
                if not room:
                    yield dropped, piece
                    dropped, piece, room = [], {}, PIECE
        yield dropped, piece

    def then(self, later: _Span[BucketT, KeyT, ValueT]) -> _Span[BucketT, KeyT, ValueT]:
        """What changed in this span and the one after it."""
        put = {bucket: values for bucket, values in self.put.items() if bucket not in later.dropped}
        for bucket, values in later.put.items():
            put[bucket] = {**put[bucket], **values} if bucket in put else values
        return _Span(self.dropped | later.dropped, put)


class _Everything(Changes, Generic[BucketT, KeyT, ValueT]):
    """All values. Lists of keys and values take a fraction of the time that a copy of their dict does."""

    def __init__(self, buckets: dict[BucketT, dict[KeyT, ValueT]]) -> None:
        self._columns = {bucket: (list(values), list(values.values())) for bucket, values in buckets.items()}
        self.size = sum(len(keys) for keys, _ in self._columns.values())

    def pieces(self) -> Iterator[Piece[BucketT, KeyT, ValueT]]:
        piece: dict[BucketT, dict[KeyT, ValueT | None]] = {}
        room = PIECE
        for bucket, (keys, values) in self._columns.items():
            at = 0
            while at < len(keys):
                end = at + room
                piece[bucket] = dict(zip(keys[at:end], values[at:end], strict=True))
                at, room = end, room - len(piece[bucket])
                if not room:
                    yield [], piece
                    piece, room = {}, PIECE
        yield [], piece


class KeyedState(State, Generic[BucketT, KeyT, ValueT]):
    """A value for each key, in buckets that can be dropped whole. None is no value.

    Each change is put into the span under way, too, so that nothing is copied when the span ends.
    """

    def __init__(self) -> None:
        super().__init__()
        self._buckets: dict[BucketT, dict[KeyT, ValueT]] = {}
        self._spans: list[_Span[BucketT, KeyT, ValueT]] = []  # the first one's changes are nowhere asked for
        self._open: _Span[BucketT, KeyT, ValueT] = _Span()

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
        self._buckets.setdefault(bucket, {})[key] = value
        self._open.put.setdefault(bucket, {})[key] = value

    def put_all(self, bucket: BucketT, keys: Sequence[KeyT], values: Sequence[ValueT]) -> None:
        """Give each of the keys its value."""
        self._buckets.setdefault(bucket, {}).update(zip(keys, values, strict=True))
        self._open.put.setdefault(bucket, {}).update(zip(keys, values, strict=True))

    def remove(self, bucket: BucketT, key: KeyT) -> None:
        """Remove a key; nothing happens if it is not there."""
        if self._buckets.get(bucket, {}).pop(key, None) is not None:
            self._open.put.setdefault(bucket, {})[key] = None

    def items(self, bucket: BucketT) -> list[tuple[KeyT, ValueT]]:
        """Every key of a bucket with its value."""
        return list(self._buckets.get(bucket, {}).items())

    def drop(self, bucket: BucketT) -> dict[KeyT, ValueT]:
        """Drop a bucket; returns what was in it."""
        self._open.put.pop(bucket, None)
        self._open.dropped.add(bucket)
        return self._buckets.pop(bucket, {})

    def buckets(self) -> list[BucketT]:
        """Every bucket that something was put into and that was not dropped."""
        return list(self._buckets)

    @property
    def changed(self) -> int:
        return self._open.size

    def apply(self, piece: Piece[BucketT, KeyT, ValueT]) -> None:
        dropped, put = piece
        for bucket in dropped:
            self.drop(bucket)
        for bucket, values in put.items():
            kept = {key: value for key, value in values.items() if value is not None}
            self.put_all(bucket, list(kept), list(kept.values()))
            for key in values.keys() - kept.keys():
                self.remove(bucket, key)

    def content(self) -> dict[BucketT, dict[KeyT, ValueT]]:
        return {bucket: dict(values) for bucket, values in self._buckets.items() if values}

    def _everything(self) -> _Everything[BucketT, KeyT, ValueT]:
        return _Everything(self._buckets)

    def _changed_after(self, after: int) -> _Span[BucketT, KeyT, ValueT]:
        found, *later = *self._spans[after:], self._open
        for each in later:
            found = found.then(each)
        return found

    def _end_span(self, after: int, changes: Changes | None) -> None:
        self._spans[after:] = [changes if isinstance(changes, _Span) else _Span()]
        self._open = _Span()
