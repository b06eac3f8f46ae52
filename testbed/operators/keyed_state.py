"""State that has a value of any type for each key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic

from testbed.operators.layers import Columns, Layer, Layers, Piece, Span
from testbed.operators.state import BucketT, Changes, KeyT, State, ValueT

MOST_LAYERS = 32  # that nobody has written: then the state is copied instead


class KeyedState(State, Generic[BucketT, KeyT, ValueT]):
    """A value for each key, in buckets that can be dropped whole. None is no value.

    Each change is put into the span under way, too, and the layers of all spans are kept: what is in them is the whole
    state. So a checkpoint of all copies nothing while the operator waits. Until a span has ended, what is removed was
    never written: so it leaves no trace, and an operator without checkpoints needs no more memory than its state.
    """

    def __init__(self) -> None:
        super().__init__()
        self._buckets: dict[BucketT, dict[KeyT, ValueT]] = {}
        self._spans: list[Layers[BucketT, KeyT, ValueT]] = []
        self._open: Span[BucketT, KeyT, ValueT] = Span()
        self._layers_are_all = True

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
        if self._buckets.get(bucket, {}).pop(key, None) is None:
            return
        if self._spans:
            self._open.put.setdefault(bucket, {})[key] = None
            self._open.removes = True
        else:
            self._open.put.get(bucket, {}).pop(key, None)

    def items(self, bucket: BucketT) -> list[tuple[KeyT, ValueT]]:
        """Every key of a bucket with its value."""
        return list(self._buckets.get(bucket, {}).items())

    def drop(self, bucket: BucketT) -> dict[KeyT, ValueT]:
        """Drop a bucket; returns what was in it."""
        self._open.put.pop(bucket, None)
        if self._spans:
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

    @property
    def sizes(self) -> Sequence[int]:
        return [span.size for span in self._spans]

    def forget(self) -> None:
        super().forget()
        self._spans, self._layers_are_all = [], False

    def _everything(self) -> Layers[BucketT, KeyT, ValueT]:
        layers = self._layers_after(0)
        if not self._layers_are_all or len(layers) > MOST_LAYERS:
            copied = {bucket: (list(values), list(values.values())) for bucket, values in self._buckets.items()}
            layers = [Columns(set(), copied)]
        self._layers_are_all = True
        return Layers(layers, is_whole=True)

    def _changed_after(self, after: int) -> Layers[BucketT, KeyT, ValueT]:
        return Layers(self._layers_after(after), is_whole=False)

    def _layers_after(self, after: int) -> list[Layer[BucketT, KeyT, ValueT]]:
        return [layer for span in self._spans[after:] for layer in span.layers] + [self._open]

    def _end_span(self, after: int, changes: Changes | None) -> None:
        self._spans[after:] = [changes if isinstance(changes, Layers) else Layers([self._open], is_whole=True)]
        self._open = Span()
