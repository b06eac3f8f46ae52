"""Keeps messages in the store that wait on a cycle and are too many for memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial

from testbed.core.effects import Discard, Fetch, PartitionEffect, Spill
from testbed.core.frames import Frame, log_parts
from testbed.core.segments import Segment, SpilledOutput, held_bytes

SHARES = 4  # of the memory: a half for what is next and what came last, a half for what is on its way to the store


class Overflow(SpilledOutput):
    """Frames that wait on the channels that close a cycle. An operator does not wait for credit there, since it could
    be waiting for itself, so that any number may wait.

    On each channel the next frames are in memory. Those behind them are in segments, of which each goes to the store as
    soon as it is full. The first segment comes back when no frame before it is left. Nothing here outlives the
    partition: after a failure, what waited comes from the logs or the input again.

    overfull   whether the store does not keep up: then the partition takes no input until it does. That is no wait for
               credit, so it ends even if the whole cycle waits
    """

    def __init__(self, channels: Iterable[int], most_bytes: int, effects: list[PartitionEffect]) -> None:
        """`most_bytes`: so much of all channels together may be in memory, and beyond it what one message makes."""
        self._segments: dict[int, deque[Segment]] = {channel: deque() for channel in channels}
        self._next_bytes = dict.fromkeys(self._segments, 0)  # of the next frames, since there were none
        self._segment_bytes = most_bytes // (SHARES * max(1, len(self._segments)))
        self._most_unstored = most_bytes // 2
        self._effects = effects
        self.restore("")

    def restore(self, stem: str) -> None:
        """Nothing waits. `stem`: of the keys of objects, which no other life of the partition has; {} is their number.

        Objects of an earlier life are deleted with all others that this partition wrote in it.
        """
        for segments in self._segments.values():
            segments.clear()
        self._stem, self._spilled, self._unstored_bytes = stem, 0, 0
        self._in_store: dict[str, Segment] = {}  # and on their way there
        self._fetching: set[str] = set()
        self._refused = False

    @property
    def overfull(self) -> bool:
        return self._unstored_bytes > self._most_unstored

    @property
    def empty(self) -> bool:
        """Whether nothing waits behind the next frames of any channel."""
        return not any(self._segments.values())

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(self._in_store)

    def add(self, upcoming: deque[Frame], frame: Frame) -> None:
        """A frame waits behind all others of its channel, of which the next ones are `upcoming`."""
        segments = self._segments[frame.channel]
        if not segments and (not upcoming or self._next_bytes[frame.channel] <= self._segment_bytes):
            before = self._next_bytes[frame.channel] if upcoming else 0
            self._next_bytes[frame.channel] = before + held_bytes(frame)
            upcoming.append(frame)
            return
        if not segments or segments[-1].closed:
            segments.append(Segment(frame.channel))
        segments[-1].add(frame)
        if segments[-1].size > self._segment_bytes:
            segments[-1].closed = True
            self._unstored_bytes += segments[-1].size
            self._spill(segments[-1])

    def bring(self, channel: int, upcoming: deque[Frame]) -> bool:
        """No next frame is left on a channel: put those of the first segment there. Returns whether there are any.

        If they are in the store, they are read back; `on_fetched` tells when to ask again.
        """
        segments = self._segments[channel]
        if not segments:
            return False
        first = segments[0]
        if first.frames is None:
            if first.key is not None and first.key not in self._fetching:
                self._fetching.add(first.key)
                self._effects.append(Fetch(first.key))
            return False
        segments.popleft()
        upcoming.extend(first.frames)
        self._next_bytes[channel] = first.size
        if first.closed and not first.stored:
            self._unstored_bytes -= first.size
        if first.key is not None:
            del self._in_store[first.key]
            self._fetching.discard(first.key)
            self._effects.append(Discard((first.key,)))
        return True

    # What the store answers.

    def on_spilled(self, key: str) -> None:
        segment = self._in_store.get(key)
        if segment is not None:
            segment.stored, segment.frames = True, None
            self._unstored_bytes -= segment.size

    def on_refused(self, key: str) -> None:
        segment = self._in_store.pop(key, None)
        if segment is not None:
            segment.key, self._refused = None, True

    def retry(self) -> None:
        if self._refused:
            self._refused = False
            for segments in self._segments.values():
                for segment in segments:
                    if segment.closed and segment.key is None:
                        self._spill(segment)

    def on_fetched(self, key: str, frames: Sequence[Frame]) -> int | None:
        if key not in self._fetching:
            return None
        self._fetching.discard(key)
        segment = self._in_store[key]
        segment.frames = list(frames)
        return segment.channel

    def _spill(self, segment: Segment) -> None:
        self._spilled += 1
        segment.key = self._stem.format(self._spilled)
        self._in_store[segment.key] = segment
        self._effects.append(Spill(segment.key, partial(log_parts, tuple(segment.frames or ()))))
