"""The interface of operator state to checkpoints: each checkpoint holds the changes since an earlier one.

What `State.changes` returns stays as it is while the operator goes on, so that another thread can write it: piece by
piece, since no other thread goes on while Python pickles one. Values must be picklable and are never changed in place.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from io import BytesIO
from typing import Any, TypeVar

from experiments.errors import BadInput

BucketT = TypeVar("BucketT", bound=Hashable)
KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")
PIECE = 1 << 13  # values or rows: what Python pickles in about a millisecond


class Changes(ABC):
    """What changed in a state, up to when it was asked.

    size   how many values or rows
    """

    size: int

    @abstractmethod
    def pieces(self) -> Iterator[Any]:
        """The changes in small parts, which are applied one after the other."""


class State(ABC):
    """A part of an operator's state.

    Its past is cut into spans. The first one begins with the empty state; each call of `changes` ends one.
    """

    def __init__(self) -> None:
        self._sizes: list[int] = []

    @property
    def sizes(self) -> Sequence[int]:
        """How many values or rows changed in each span that has ended."""
        return self._sizes

    @property
    @abstractmethod
    def changed(self) -> int:
        """How many values or rows have changed since the last span ended."""

    def changes(self, after: int) -> Changes:
        """End a span; returns what changed after the first `after` spans, which is one span from now on.

        After 0 spans that is everything: changes to an empty state.
        """
        found = self._changed_after(after) if after else self._everything()
        self._end_span(after, found)
        self._sizes[after:] = [found.size]
        return found

    def end_span(self) -> None:
        """End a span: what was applied in it has an object of its own."""
        if self._sizes:
            self.changes(len(self._sizes))
        else:
            self._sizes = [self.changed]
            self._end_span(0, None)

    def forget(self) -> None:
        """Forget all spans: the next changes are everything."""
        self._sizes = []
        self._end_span(0, None)

    @abstractmethod
    def apply(self, piece: Any) -> None:
        """Make the changes of a piece that another state returned."""

    @abstractmethod
    def content(self) -> dict[Any, Any]:
        """The whole state, for comparisons: equal states have equal contents, with any history."""

    @abstractmethod
    def _everything(self) -> Changes: ...

    @abstractmethod
    def _changed_after(self, after: int) -> Changes: ...

    @abstractmethod
    def _end_span(self, after: int, changes: Changes | None) -> None:
        """All but the first `after` spans become one, which has these changes; None if they will not be needed."""


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
