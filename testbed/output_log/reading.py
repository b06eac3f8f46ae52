"""Reads the log of an operator backwards, segment by segment."""

from __future__ import annotations

from collections.abc import Iterator
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


class LogReader:
    """What the log of this name has in a store. `rows` is the schema of what the operator emits.

    An operator that was given up may be alive and write on. Its segments have an older life than those of its
    successor, and no segment leads back to them.
    """

    def __init__(self, store: ObjectStore, name: str, rows: pa.Schema) -> None:
        """Raises `EnvironmentFailure` if the store refuses to list its objects."""
        self._store, self._name, self._rows = store, name, rows
        stem = f"{name}/segment-"
        keys = store.keys()
        parts = [key.removeprefix(stem).split("-") for key in keys if key.startswith(stem)]
        self.ids = {SegmentId(int(life), int(number)) for number, life in parts}

    @property
    def newest(self) -> SegmentId | None:
        """The last segment of the newest life; None if there is none."""
        return max(self.ids, default=None)

    @property
    def next_life(self) -> int:
        """A life that no segment has."""
        return self.newest.life + 1 if self.newest else 0

    def before(self, id: SegmentId) -> SegmentId | None:
        """The segment before one that can't be read; None if there is none.

        Where two lives wrote one number, either is a state that the operator went through, as long as content decides
        the order of its input.
        """
        older = [each for each in self.ids if each.number < id.number and each.life <= id.life]
        return max(older, key=lambda each: (each.number, each.life), default=None)

    def backward(self, end: SegmentId) -> Iterator[tuple[SegmentId, Segment]]:
        """The segments from this one back to the first. Raises `UnreadableSegment`."""
        id = end
        while id.life != NO_LIFE:
            segment = self._read(id)
            yield id, segment
            id = SegmentId(segment.before, id.number - 1)

    def _read(self, id: SegmentId) -> Segment:
        try:
            return decode_segment(self._store.get(segment_key(self._name, id)), self._rows)
        except (UnreadableObject, DamagedSegment) as error:
            raise UnreadableSegment(id, str(error)) from error
