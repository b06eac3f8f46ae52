"""Output that a partition keeps after sending it, for receivers that roll back while the partition goes on."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from testbed.core.by_batch.segments import RetainedSegment
from testbed.core.effects import Discard, Fetch, PartitionEffect, Spill
from testbed.core.frames import Frame, FrameKind, log_parts
from testbed.core.segments import SpilledOutput

HELD_UP_AT = 2  # a partition takes no input while it keeps more than this multiple of its memory limit
SEGMENTS = 4  # segments per channel: this many of every channel fill the memory


class Retained(SpilledOutput):
    """Every frame that was sent since a checkpoint which no recovery rolls back beyond, by channel.

    With batches, checkpoints of one number lie at the same border in all partitions, so nothing is in flight at them:
    what the receiver of a channel lacks at its checkpoint is what the sender has sent since its own of that number.

    The frames of a channel have places 0, 1, ... and are kept in segments. What is too much for memory goes to the
    store, the oldest segments of the channel with the most first, one after the other. It is read back segment by
    segment, at most one at a time for each reader of a channel: its receiver, and the receiver's copy.

    stem             of the keys of objects in the store, which no other life of the partition has; {} is their number
    frames           how many frames are kept
    unstored_bytes   about how much memory those frames take up that are not in the store [bytes]
    """

    def __init__(
        self,
        channels: Iterable[int],
        number: int,
        stem: str = "",
        most_bytes: int = 1 << 62,
        effects: list[PartitionEffect] | None = None,
    ) -> None:
        """
        number       of the checkpoint at which the partition is
        most_bytes   so much may be in memory before anything goes to the store
        """
        self._segments: dict[int, list[RetainedSegment]] = {channel: [] for channel in channels}
        self._ends = dict.fromkeys(self._segments, 0)
        self._marks: deque[tuple[int, dict[int, int]]] = deque([(number, dict(self._ends))])
        self.stem, self._most_bytes = stem, most_bytes
        self._segment_bytes = most_bytes // (SEGMENTS * max(1, len(self._segments)))
        self._effects: list[PartitionEffect] = [] if effects is None else effects
        self._unstored: Counter[int] = Counter()
        self._in_store: dict[str, RetainedSegment] = {}  # and on their way there
        self._spilled = 0
        self._under_way: str | None = None
        self._refused = False
        self._read: dict[Hashable, RetainedSegment] = {}
        self._places: dict[Hashable, tuple[int, int]] = {}  # the channel and the place to which each reader has come
        self.frames = self.unstored_bytes = 0

    @property
    def number(self) -> int:
        """The checkpoint since which all is here."""
        return self._marks[0][0]

    @property
    def overfull(self) -> bool:
        return self.unstored_bytes > HELD_UP_AT * self._most_bytes

    @property
    def segments(self) -> Iterator[RetainedSegment]:
        """All that is kept, channel by channel."""
        return chain.from_iterable(self._segments.values())

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(self._in_store)

    def add(self, frame: Frame) -> None:
        """A frame was sent."""
        channel = frame.channel
        of, end = self._segments[channel], self._ends[channel]
        if not of or of[-1].closed or of[-1].size > self._segment_bytes:
            of.append(RetainedSegment(channel, first=end))
        size = of[-1].add(frame)
        self._ends[channel] = end + 1
        self._unstored[channel] += size
        self.unstored_bytes += size
        self.frames += 1
        self._spill()

    def mark(self, number: int) -> None:
        """A checkpoint is taken: what is added from now on is after it, and in segments of its own."""
        self._marks.append((number, dict(self._ends)))
        for of in self._segments.values():
            if of:
                of[-1].closed = True

    def trim(self, number: int) -> None:
        """No recovery will roll back beyond the checkpoint with this number: what lies before it is let go."""
        while len(self._marks) > 1 and self._marks[1][0] <= number:
            self._marks.popleft()
        self._let_go()

    def _let_go(self) -> None:
        """Drop the segments that lie before the first mark, but for those that somebody has yet to read."""
        untils, garbage = dict(self._marks[0][1]), list[str]()
        for channel, place in self._places.values():
            untils[channel] = min(place, untils[channel])
        for channel, until in untils.items():
            of = self._segments[channel]
            gone = bisect_right(of, until, key=lambda each: each.stop)
            for segment in of[:gone]:
                self.frames -= len(segment)
                if not segment.stored:
                    self._count_stored(segment)
                if segment.key is not None:
                    del self._in_store[segment.key]
                    garbage.append(segment.key)
            del of[:gone]
        if garbage:
            self._effects.append(Discard(tuple(garbage)))

    def since(self, channel: int, number: int) -> int:
        """The place on a channel from which all was sent since the checkpoint with this number.

        Raises `KeyError` if that was let go.
        """
        return dict(self._marks)[number][channel]

    def end(self, channel: int) -> int:
        """The place behind the last frame of a channel."""
        return self._ends[channel]

    def behind(self, channel: int, batch: int) -> int:
        """The place behind the border of a batch, or of the last one before it; 0 if no such border is kept."""
        for segment in reversed(self._segments[channel]):
            at = bisect_right(segment.borders, batch, key=lambda border: border[0])
            if at:
                return segment.borders[at - 1][1]
        return 0

    # Reading: each reader reads one channel, one place after the other, until it leaves. Frames that it needs stay.

    def begin(self, reader: Hashable, channel: int, place: int) -> None:
        """Somebody will read on from this place."""
        self._places[reader] = channel, place

    def read(self, reader: Hashable, channel: int, place: int) -> Frame | None:
        """The frame at a place; None if it is to be read back first, after which it is there."""
        self._places[reader] = channel, place
        of = self._segments[channel]
        segment = of[bisect_right(of, place, key=lambda each: each.first) - 1]
        if self._read.get(reader) is not segment:
            self._close(reader)
            self._read[reader] = segment
            if segment.frames is None and segment.key is not None:
                self._effects.append(Fetch(segment.key))
        return None if segment.frames is None else segment.frames[place - segment.first]

    def leave(self, reader: Hashable) -> None:
        """Who reads does not go on."""
        self._close(reader)
        if self._places.pop(reader, None) is not None:
            self._let_go()

    def forget_readers(self) -> None:
        """Nobody reads on. Readers know this: if it knew them, too, all would stay until a search for garbage."""
        self._read.clear()
        self._places.clear()

    def _close(self, reader: Hashable) -> None:
        """Somebody has done with a segment."""
        segment = self._read.pop(reader, None)
        if segment is not None and segment.stored and not self._is_read(segment):
            segment.frames = None

    # What the store answers.

    def on_spilled(self, key: str) -> None:
        if key != self._under_way:
            return
        self._under_way = None
        segment = self._in_store.get(key)
        if segment is not None:
            self._count_stored(segment)
            if not self._is_read(segment):
                segment.frames = None
        self._spill()

    def on_refused(self, key: str) -> None:
        if key == self._under_way:
            self._under_way, self._refused = None, True
            segment = self._in_store.pop(key, None)
            if segment is not None:
                segment.key = None

    def retry(self) -> None:
        self._refused = False
        self._spill()

    def on_fetched(self, key: str, frames: Sequence[Frame]) -> int | None:
        segment = self._in_store.get(key)
        if segment is None or not self._is_read(segment):
            return None
        segment.frames = list(frames)
        return segment.channel

    def has_other_than(self, *kinds: FrameKind) -> bool:
        """Whether a frame of another kind is in memory."""
        return any(frame.kind not in kinds for segment in self.segments for frame in segment.frames or ())

    def _spill(self) -> None:
        """If there is too much in memory, put a segment into the store: one at a time."""
        if self.unstored_bytes <= self._most_bytes or self._under_way is not None or self._refused:
            return
        ((channel, _),) = self._unstored.most_common(1)
        of = self._segments[channel]
        segment = of[bisect_left(of, True, key=lambda each: each.key is None)]
        self._spilled += 1
        segment.closed, segment.key = True, self.stem.format(self._spilled)
        self._in_store[segment.key] = segment
        self._under_way = segment.key
        self._effects.append(Spill(segment.key, partial(log_parts, tuple(segment.frames or ()))))

    def _is_read(self, segment: RetainedSegment) -> bool:
        return any(each is segment for each in self._read.values())

    def _count_stored(self, segment: RetainedSegment) -> None:
        """The memory of this segment does not count any more."""
        segment.stored = True
        self._unstored[segment.channel] -= segment.size
        self.unstored_bytes -= segment.size
