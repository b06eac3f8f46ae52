"""Reads the log of an operator backwards, segment by segment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from experiments.errors import AftershockError
from testbed.output_log.blocks import NO_LIFE, DamagedSegment, Segment, decode_segment
from testbed.stores.store import ObjectStore, UnreadableObject


class SegmentId(NamedTuple):
    """A segment by the life that wrote it and its number in the log, from 1."""

    life: int
    number: int


class UnreadableSegment(AftershockError):
    """A segment is missing or damaged."""

    def __init__(self, id: SegmentId, cause: str) -> None:
        super().__init__(cause)
        self.id = id


def segment_key(name: str, id: SegmentId) -> str:
    """The key under which the log of this name keeps a segment."""
    return f"{name}/segment-{id.number}-{id.life}"


def life_key(name: str, life: int) -> str:
    """The key of the object that reserves a life in the log of this name."""
    return f"{name}/life-{life}"


def newest_life(store: ObjectStore, name: str) -> int:
    """The newest life that is reserved or has segments in the log of this name; 0 if there is none.

    Raises `EnvironmentFailure` if the store refuses.
    """
    stem, keys = life_key(name, 0)[:-1], store.keys(name)
    reserved = {int(key.removeprefix(stem)) for key in keys if key.startswith(stem)}
    return max(reserved | {id.life for id in _segments(name, keys)}, default=0)


def _segments(name: str, keys: Iterable[str]) -> set[SegmentId]:
    stem = f"{name}/segment-"
    parts = (key.removeprefix(stem).split("-") for key in keys if key.startswith(stem))
    return {SegmentId(int(life), int(number)) for number, life in parts}


class LogReader:
    """What the log of this name has in a store. `rows` is the schema of what the operator emits.

    An operator that was given up may be alive and write on. Its successor has reserved a newer life, so neither can
    overwrite a segment of the other, and no segment of the successor leads back to what is written from then on.
    """

    def __init__(self, store: ObjectStore, name: str, rows: pa.Schema) -> None:
        """Raises `EnvironmentFailure` if the store refuses to list its objects."""
        self._store, self._name, self._rows = store, name, rows
        self.refresh()

    def refresh(self) -> None:
        """List the segments again. Raises `EnvironmentFailure` if the store refuses."""
        self.ids = _segments(self._name, self._store.keys(self._name))

    @property
    def newest(self) -> SegmentId | None:
        """The last segment of the newest life; None if there is none."""
        return max(self.ids, default=None)

    def before(self, id: SegmentId) -> SegmentId | None:
        """The segment before one that can't be read; None if there is none.

        Where two lives wrote one number, either is a state that the operator went through, as long as content decides
        the order of its input.
        """
        older = [each for each in self.ids if each.number < id.number and each.life <= id.life]
        return max(older, key=lambda each: (each.number, each.life), default=None)

    def backward(self, end: SegmentId) -> Iterator[tuple[SegmentId, Segment]]:
        """The segments from this one back to the first.

        Raises `UnreadableSegment`, also if a segment does not continue the one before it. The later one counts as
        damaged then: the state at the end of the other does not need it.
        """
        id, segment = end, self._read(end)
        yield id, segment
        while segment.before != NO_LIFE:
            before = SegmentId(segment.before, id.number - 1)
            found = self._read(before)
            if not segment.continues(found):
                raise UnreadableSegment(id, f"segment {id.number} does not continue segment {before.number}")
            id, segment = before, found
            yield id, segment

    def _read(self, id: SegmentId) -> Segment:
        try:
            return decode_segment(self._store.get(segment_key(self._name, id)), self._rows)
        except (UnreadableObject, DamagedSegment) as error:
            raise UnreadableSegment(id, str(error)) from error
