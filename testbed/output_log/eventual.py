"""The eventual checkpoint: the newest footprint of each open window, found by reading the log backwards.

`cec`, section II-B, "Constructing an EC".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from experiments.errors import AftershockError
from testbed.operators import START_OF_TIME_NS
from testbed.operators.parts import NO_WINDOW, EntryKind
from testbed.output_log.blocks import NO_LIFE, Block, Segment
from testbed.output_log.extent import Footprint
from testbed.output_log.log import KeptSegment
from testbed.output_log.reading import LogReader, SegmentId, UnreadableSegment

SAVED = {EntryKind.OPEN, EntryKind.CHECK}
ALL_ARRIVED = 2**63


class StateLost(AftershockError):
    """No state can be rebuilt from what the log still has and what can be replayed."""


@dataclass(frozen=True)
class EventualCheckpoint:
    """What a recovery loads, and from where it replays.

    position       the operator comes to this position: the log knows what it did up to there
    watermark_ns   its event time there
    results        rows it had emitted by then
    windows        the open windows, the one with the oldest footprint first
    places         of each of them the newest footprint: its number in the log and its position (`Footprint`)
    parts          and the part in it
    closed         the windows that closed since the oldest of these footprints, and at which position
    replay_after   T: the records after this position are replayed
    entries        how many the log has
    extent         how many of them were read
    unsent         rows that were not known to have arrived, in order
    kept           the segments that are still needed, as far as they are known
    damaged        segments that could not be read, which is why an older state is restored
    """

    position: int
    watermark_ns: int
    results: int
    windows: list[bytes]
    places: list[tuple[int, int]]
    parts: list[bytes]
    closed: dict[bytes, int]
    replay_after: int
    entries: int
    extent: int
    unsent: list[pa.RecordBatch]
    kept: list[KeptSegment]
    damaged: tuple[SegmentId, ...] = ()


class Backward(Protocol):
    """What segments are read from, in the way of `LogReader.backward`."""

    def backward(self, end: SegmentId) -> Iterator[tuple[SegmentId, Segment]]:
        """The segments from `end` back to the first, newest first."""
        ...


def find_eventual(reader: LogReader, delivered: int, replayable_after: int) -> EventualCheckpoint:
    """The newest state that can be restored.

    Behind a damaged segment nothing can be trusted: a window that closed in it would look open. So the state at the end
    of the segment before it is restored. What the operator emitted since comes again, with the same numbers.

    Args:
        delivered: how many of the operator's rows are known to have arrived.
        replayable_after: the records after this position can be replayed.

    Raises:
        StateLost: saying which records or segments are missing.
    """
    damaged: list[SegmentId] = []
    end = reader.newest
    while end is not None:
        try:
            return _checked(_Scan(reader, end, delivered).run(tuple(damaged)), replayable_after)
        except UnreadableSegment as error:
            damaged.append(error.id)
            end = reader.before(error.id)
    if replayable_after > 0:
        raise StateLost(f"no segment can be read{_of(damaged)}, and records up to {replayable_after} can't be replayed")
    return EventualCheckpoint(0, START_OF_TIME_NS, 0, [], [], [], {}, 0, 0, 0, [], [], tuple(damaged))


def eventual_at(reader: Backward, end: SegmentId) -> EventualCheckpoint:
    """The state at the end of a segment, none of whose rows has to be sent. Raises `UnreadableSegment`, `StateLost`."""
    return _Scan(reader, end, ALL_ARRIVED).run(())


def _checked(found: EventualCheckpoint, replayable_after: int) -> EventualCheckpoint:
    if found.replay_after < replayable_after:
        wanted = f"records {found.replay_after + 1} to {replayable_after} can't be replayed"
        raise StateLost(f"{wanted}, and open windows need them{_of(found.damaged)}")
    return found


def _of(damaged: list[SegmentId] | tuple[SegmentId, ...]) -> str:
    return f" (damaged segments: {', '.join(str(each.number) for each in damaged)})" if damaged else ""


class _Scan:
    """One way back through the log, from the end of one segment."""

    def __init__(self, reader: Backward, end: SegmentId, delivered: int) -> None:
        self._reader, self._end, self._delivered = reader, end, delivered
        self._windows: list[bytes] = []
        self._places: list[tuple[int, int]] = []
        self._parts: list[bytes] = []
        self._seen: set[bytes] = {NO_WINDOW}
        self._closed: dict[bytes, int] = {}
        self._unsent: list[pa.RecordBatch] = []

    def run(self, damaged: tuple[SegmentId, ...]) -> EventualCheckpoint:
        segments = self._reader.backward(self._end)
        id, segment = next(segments)
        last, entries = segment.block, segment.ends
        kept = [self._read(id, segment, last.open_windows)]
        while not self._done(last.open_windows, segment.block) and segment.before != NO_LIFE:
            id, segment = next(segments)
            kept.append(self._read(id, segment, last.open_windows))
        if missing := last.open_windows - len(self._windows):
            raise StateLost(f"the log begins behind the footprints of {missing} open windows")
        oldest = Footprint(*self._places[-1]) if self._places else Footprint(entries, last.position)
        return EventualCheckpoint(
            last.position,
            last.watermark_ns,
            last.results,
            self._windows[::-1],
            self._places[::-1],
            self._parts[::-1],
            self._closed,
            oldest.at,
            entries,
            entries - oldest.entry,
            self._unsent[::-1],
            kept[::-1],
            damaged,
        )

    def _read(self, id: SegmentId, segment: Segment, open_windows: int) -> KeptSegment:
        fresh = segment.block.rows_after(self._delivered)
        if fresh is not None:
            self._unsent.append(fresh)
        if len(self._windows) < open_windows:
            self._take(segment.block.entries, segment.begins, open_windows)
        return KeptSegment(id, segment.ends, segment.block.results, 0, 0)

    def _done(self, open_windows: int, block: Block) -> bool:
        return len(self._windows) == open_windows and block.results_before <= self._delivered

    def _take(self, entries: pa.RecordBatch, before: int, open_windows: int) -> None:
        """Look at entries, the last one first; `before`: how many entries of the log precede them."""
        kinds, at, windows, parts = (column.to_pylist() for column in entries.columns)
        for number in range(len(kinds) - 1, -1, -1):
            window = windows[number]
            if window in self._seen:
                continue
            self._seen.add(window)
            if kinds[number] not in SAVED:
                self._closed[window] = at[number]
                continue
            self._windows.append(window)
            self._places.append((before + number, at[number]))
            self._parts.append(parts[number])
            if len(self._windows) == open_windows:
                return
