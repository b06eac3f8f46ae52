"""One reader of an input partition for all sources of a slot that read it.

Each source takes its own kind of events at its own pace. What one of them has yet to take is kept for it. If that is
much, the others wait. But what holds a source up may be that another one waits: so one that takes nothing for a while
is waited for no longer. It then reads by itself, as one does that rolls back, until they meet again.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterable

from testbed.queries import event_kinds
from testbed.runtime.connectors.topic_polls import Place, Poll
from testbed.runtime.connectors.topic_reader import MOST_EVENTS, TopicReader
from testbed.runtime.job import Job

MOST_KEPT, MEETING = 8, 4 * MOST_EVENTS  # polls; events
PATIENCE_S = 1.0


class SharedReading:
    """A partition of the input, read from some offset on, and who takes from it.

    start, stop   the offsets that are kept: from, and to before
    """

    def __init__(self, reader: TopicReader, offset: int, takers: Iterable[object]) -> None:
        self._reader, self._kept = reader, deque[Poll]()
        self.start = self.stop = self._slowest = offset
        self._takers = dict.fromkeys(takers, offset)
        self._waiting_since_s: float | None = None

    def reaches(self, offset: int) -> bool:
        """Whether this offset is kept, or so near that a source that needs it can wait for it."""
        return self.start <= offset <= self.stop + MEETING

    def take(self, taker: object, offset: int) -> Poll | None:
        """The messages with this one among them; None if it can't be had yet. The taker needs none before it."""
        self._takers[taker] = offset
        self._note_slowest()
        while self.stop <= offset:
            if len(self._kept) >= MOST_KEPT and not self._waits_for_too_long():
                return None
            found = self._reader.take()
            if found is None:
                return None
            self._kept.append(found)
            self.stop = found.stop
            self._forget()
        return next(each for each in self._kept if each.stop > offset)

    def leave(self, taker: object) -> bool:
        """This taker takes no more; returns whether no taker is left. Then the partition is read no further."""
        self._takers.pop(taker, None)
        if not self._takers:
            self._reader.close()
        return not self._takers

    def has(self, taker: object) -> bool:
        """Whether somebody takes from here, or is expected to."""
        return taker in self._takers

    def _note_slowest(self) -> None:
        slowest = min(self._takers.values())
        if slowest != self._slowest:
            self._slowest, self._waiting_since_s = slowest, None
        self._forget()

    def _waits_for_too_long(self) -> bool:
        """Somebody waits for the slowest one: whether that has been long enough."""
        now_s = time.monotonic()
        if self._waiting_since_s is None:
            self._waiting_since_s = now_s
        return now_s - self._waiting_since_s >= PATIENCE_S

    def _forget(self) -> None:
        """Drop what all have taken, and what is too much."""
        while self._kept and (self._kept[0].stop <= self._slowest or len(self._kept) > MOST_KEPT):
            self.start = self._kept.popleft().stop


class SharedInput:
    """The partitions of the input that the sources of a slot read."""

    def __init__(self, job: Job) -> None:
        self._job, self._kinds = job, event_kinds(job.workload, job.parallelism)
        self._takers: defaultdict[int, list[object]] = defaultdict(list)
        self._readings: defaultdict[int, list[SharedReading]] = defaultdict(list)

    def join(self, taker: object, partition: int) -> None:
        """Somebody will take from this partition."""
        self._takers[partition].append(taker)

    def take(self, taker: object, partition: int, offset: int) -> Poll | None:
        """The messages with this one among them; None if there is none yet. The taker needs none before it."""
        there = [each for each in self._readings[partition] if each.reaches(offset)]
        found = min(there, key=lambda each: each.stop) if there else self._begin(taker, partition, offset)
        self._leave_all(taker, partition, found)
        return found.take(taker, offset)

    def leave(self, taker: object, partition: int) -> None:
        """Somebody takes no more."""
        self._leave_all(taker, partition)
        self._takers[partition].remove(taker)

    def end(self, partition: int) -> int | None:
        """The offset before which a partition ends; None of one without end."""
        events, partitions = self._job.input.events, self._job.parallelism
        return None if events is None else (events - partition + partitions - 1) // partitions

    def _begin(self, taker: object, partition: int, offset: int) -> SharedReading:
        """Read from here on, also for those who have not begun: where all start, they start together."""
        idle = [each for each in self._takers[partition] if not any(at.has(each) for at in self._readings[partition])]
        place = Place(self._job.input.topic, partition, self._job.parallelism, self._kinds)
        given = self._job.input
        reader = TopicReader(given.broker, place, offset, self.end(partition), given.batch_records)
        self._readings[partition].append(begun := SharedReading(reader, offset, {taker, *idle}))
        return begun

    def _leave_all(self, taker: object, partition: int, but: SharedReading | None = None) -> None:
        for each in list(self._readings[partition]):
            if each is not but and each.has(taker) and each.leave(taker):
                self._readings[partition].remove(each)
