"""The layers of a state of any values: what changed in each span of its past, merged by the thread that writes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Generic, TypeAlias

from testbed.operators.state import PIECE, BucketT, Changes, KeyT, ValueT

# Buckets that were dropped; by bucket the values of keys after that, None where one was removed.
Piece: TypeAlias = tuple[list[BucketT], dict[BucketT, dict[KeyT, ValueT | None]]]
Entries: TypeAlias = Iterable[tuple[KeyT, ValueT | None]]
SHARD = 1 << 14  # keys: Python stops all threads while it enlarges a set, the longer the larger it is


class Layer(ABC, Generic[BucketT, KeyT, ValueT]):
    """What changed in a span: first buckets were dropped, then keys got values, None where one was removed.

    dropped   the buckets
    removes   whether some value may be None
    """

    dropped: set[BucketT]
    removes: bool

    @property
    def size(self) -> int:
        """How many values and dropped buckets it has."""
        return sum(self.lengths().values()) + len(self.dropped)

    @abstractmethod
    def lengths(self) -> dict[BucketT, int]:
        """How many keys of each bucket it has."""

    @abstractmethod
    def parts(self) -> Iterator[tuple[BucketT, Entries[KeyT, ValueT]]]:
        """All keys with their values, at most `PIECE` of a bucket at a time; each key once."""


@dataclass
class Span(Layer[BucketT, KeyT, ValueT]):
    """The layer of one span, which gets more while the span is under way."""

    dropped: set[BucketT] = field(default_factory=set)
    put: dict[BucketT, dict[KeyT, ValueT | None]] = field(default_factory=dict)
    removes: bool = False

    @property
    def size(self) -> int:
        return sum(map(len, self.put.values())) + len(self.dropped)

    def lengths(self) -> dict[BucketT, int]:
        return {bucket: len(values) for bucket, values in self.put.items()}

    def parts(self) -> Iterator[tuple[BucketT, Entries[KeyT, ValueT]]]:
        for bucket, values in self.put.items():
            if len(values) <= PIECE:
                yield bucket, values.items()
                continue
            entries = iter(values.items())
            while some := list(islice(entries, PIECE)):
                yield bucket, some


@dataclass
class Columns(Layer[BucketT, KeyT, ValueT]):
    """A layer as lists of keys and values, which have a fraction of a dict's size. To enlarge them stops nobody."""

    dropped: set[BucketT] = field(default_factory=set)
    columns: Mapping[BucketT, tuple[list[KeyT], Sequence[ValueT | None]]] = field(default_factory=dict)
    removes: bool = False

    @cached_property
    def size(self) -> int:
        return super().size

    def lengths(self) -> dict[BucketT, int]:
        return {bucket: len(keys) for bucket, (keys, _) in self.columns.items()}

    def parts(self) -> Iterator[tuple[BucketT, Entries[KeyT, ValueT]]]:
        for bucket, (keys, values) in self.columns.items():
            if len(keys) <= PIECE:
                yield bucket, zip(keys, values, strict=True)
                continue
            for start in range(0, len(keys), PIECE):
                yield bucket, zip(keys[start : start + PIECE], values[start : start + PIECE], strict=True)


class Layers(Changes, Generic[BucketT, KeyT, ValueT]):
    """What changed in several spans. They are merged as they are written, and are one layer from then on.

    layers   the oldest first
    size     before they are written, keys that changed in several spans count several times
    """

    def __init__(self, layers: Sequence[Layer[BucketT, KeyT, ValueT]], *, is_whole: bool) -> None:
        """`is_whole`: there was nothing before, so that nothing has to be dropped or removed."""
        self.layers, self._is_whole = tuple(layers), is_whole
        self.size = sum(layer.size for layer in layers)

    def pieces(self) -> Iterator[Piece[BucketT, KeyT, ValueT]]:
        layers, merged = self.layers, dict[BucketT, tuple[list[KeyT], list[ValueT | None]]]()
        gone = set() if self._is_whole else set().union(*(layer.dropped for layer in layers))
        dropped, piece, size = list(gone), dict[BucketT, dict[KeyT, ValueT | None]](), 0
        for bucket, values in self._newest(layers):
            if bucket in merged:
                keys_of, values_of = merged[bucket]
                keys_of.extend(values)
                values_of.extend(values.values())
            else:
                merged[bucket] = list(values), list(values.values())
            piece[bucket] = piece[bucket] | values if bucket in piece else values
            size += len(values)
            if size >= PIECE:
                yield dropped, piece
                dropped, piece, size = [], {}, 0
        removes = not self._is_whole and any(layer.removes for layer in layers)
        one: Columns[BucketT, KeyT, ValueT] = Columns(gone, merged, removes)
        self.layers, self.size = (one,), one.size
        yield dropped, piece

    def _newest(
        self, layers: Sequence[Layer[BucketT, KeyT, ValueT]]
    ) -> Iterator[tuple[BucketT, dict[KeyT, ValueT | None]]]:
        """The value that each key has in the end, the newest layer first."""
        seen, gone = _Seen[BucketT, KeyT, ValueT](layers[1:]), set[BucketT]()
        for layer in reversed(layers):
            for bucket, entries in layer.parts():
                if bucket in gone:
                    continue
                values = seen.unseen(bucket, entries, is_last=layer is layers[0])
                if self._is_whole and layer.removes:
                    values = {key: value for key, value in values.items() if value is not None}
                if values:
                    yield bucket, values
            gone |= layer.dropped


class _Seen(Generic[BucketT, KeyT, ValueT]):
    """The keys of newer layers, by bucket, in sets that stay small."""

    def __init__(self, layers: Iterable[Layer[BucketT, KeyT, ValueT]]) -> None:
        """`layers`: all that can have newer values than another one."""
        lengths: Counter[BucketT] = Counter()
        for layer in layers:
            lengths.update(layer.lengths())
        self._sets: dict[BucketT, list[set[KeyT]]] = {
            bucket: [set() for _ in range(1 + length // SHARD)] for bucket, length in lengths.items()
        }

    def unseen(self, bucket: BucketT, entries: Entries[KeyT, ValueT], *, is_last: bool) -> dict[KeyT, ValueT | None]:
        """The entries whose keys are in no newer layer; `is_last`: there is no older layer."""
        sets = self._sets.get(bucket)
        if sets is None:
            return dict(entries)
        if len(sets) == 1:
            (only,) = sets
            found = {key: value for key, value in entries if key not in only}
            if not is_last:
                only.update(found)
            return found
        count = len(sets)
        found = {key: value for key, value in entries if key not in sets[hash(key) % count]}
        for key in () if is_last else found:
            sets[hash(key) % count].add(key)
        return found
