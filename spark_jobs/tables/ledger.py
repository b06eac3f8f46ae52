"""The ledger: every instant of the measurement window belongs to one class, and the classes add up to it exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import median

from results.tables.schema import LedgerClass
from spark_jobs.tables.outages import Outage
from spark_jobs.tables.streaming.batches import Batch

NS = 1_000_000_000
FEWEST_STEADY = 2


@dataclass(frozen=True)
class LedgerSegment:
    """A part of the window [UTC ns] that belongs to one class, and the batch or fault that it is due to, if any."""

    start_ns: int
    end_ns: int
    kind: LedgerClass
    batch: int | None = None
    fault: int | None = None


@dataclass(frozen=True)
class UndisturbedPace:
    """How fast undisturbed batches process: `rate` [records/ns].

    Real-time batches have a set length instead: they process for `length_ns`, with any number of records.
    """

    rate: float | None
    length_ns: float = 0.0

    def excess_ns(self, batch: Batch) -> int:
        """How much longer than undisturbed a batch took."""
        usual_ns = batch.records / self.rate if self.rate else self.length_ns
        return max(0, round(batch.processing_ns - usual_ns))


def steady(batches: list[Batch], outages: list[Outage]) -> list[Batch]:
    """The batches with input that no outage touched: neither during them, nor as the first after a restart.

    Batches without a host that died while the query went on (recovery by task) are none either, nor is the one after
    them, which has the host's cold executor.
    """
    slow = {batch.batch for outage in outages for batch in _slowed(batches, outage)}
    return [b for b in batches if b.records and b.batch not in slow and not any(_touches(o, b) for o in outages)]


def _slowed(batches: list[Batch], outage: Outage) -> list[Batch]:
    with_input = [batch for batch in batches if batch.records]
    first = first_after(with_input, outage)
    if first is None or (first.started_ns >= outage.death_ns and not outage.went_on):
        return [first] if first else []
    whole_ns = max(first.ended_ns, outage.back_ns or 0)
    without = [batch for batch in with_input if first.ended_ns <= batch.started_ns < whole_ns]
    return [first, *without, *[batch for batch in with_input if batch.started_ns >= whole_ns][:1]]


def first_after(batches: list[Batch], outage: Outage) -> Batch | None:
    """The first batch committed after the restart: the one that was in flight when the fault struck.

    If it has no records, nothing was in flight: Spark runs a batch that a fault cut off before any other.
    """
    return next((b for b in batches if outage.ready_ns and b.ended_ns > outage.ready_ns), None)


def pace(steady_batches: list[Batch], real_time: bool) -> UndisturbedPace | None:
    """The usual pace; None when too few batches ran undisturbed to tell.

    If checkpoints took all the time of a batch, it tells nothing of how fast records are processed.
    """
    telling = [batch for batch in steady_batches if real_time or batch.processing_ns > 0]
    if len(telling) < FEWEST_STEADY:
        return None
    if real_time:
        return UndisturbedPace(None, median(batch.processing_ns for batch in telling))
    return UndisturbedPace(median(batch.records / batch.processing_ns for batch in telling))


def ledger(
    window: tuple[int, int],
    batches: list[Batch],
    outages: list[Outage],
    usual: UndisturbedPace | None,
    interval_ns: int,
) -> list[LedgerSegment]:
    """Contiguous segments that cover the window [start_ns, end_ns).

    Between outages, batches alternate with idle time. The batch that an outage cut off is lost from its start to the
    death. The first batch after a restart runs on cold executors: its time beyond the usual pace is warm-up. In
    a batch that outlived the death of a host (recovery by task), the excess is lost: work done again, and work that
    the absent host did not do. It comes after the death, evenly over the rest of the batch. So it is in all batches
    that begin before the host is back. The first one after that runs on a cold executor: its excess is warm-up. A death
    between batches takes no time from a query that goes on.
    """
    in_order = sorted(batches, key=lambda b: b.started_ns)
    timeline = _Timeline(window, in_order, outages, usual, interval_ns)
    clipped = (clip(segment, window) for segment in timeline.segments())
    return [segment for segment in clipped if segment.end_ns > segment.start_ns]


@dataclass(frozen=True)
class _Timeline:
    """Makes the ledger's segments; the batches are in the order in which they began."""

    window: tuple[int, int]
    batches: list[Batch]
    outages: list[Outage]
    usual: UndisturbedPace | None
    interval_ns: int

    def segments(self) -> Iterator[LedgerSegment]:
        window = self.window
        cursor, before = min([window[0], *(b.started_ns for b in self.batches)]), None
        for outage in self.outages:
            for segment in self._running(cursor, outage.death_ns, before, outage):
                yield segment
                cursor = segment.end_ns
            for segment in () if outage.went_on else outage_segments(outage, cursor, window[1]):
                yield segment
                cursor = segment.end_ns
            before = outage
        yield from self._running(cursor, max(window[1], cursor), before, None)

    def _running(
        self, start_ns: int, until_ns: int, before: Outage | None, after: Outage | None
    ) -> Iterator[LedgerSegment]:
        """From a restart (or the beginning) to the next death (or the end)."""
        cursor, last = start_ns, None
        down = None if before is None or before.went_on else before
        for batch in self.batches:
            if start_ns < batch.ended_ns and batch.started_ns < until_ns:
                begin = max(batch.started_ns, cursor)
                if down and last is None:
                    yield LedgerSegment(cursor, begin, LedgerClass.RESTART, fault=down.fault)
                else:
                    yield LedgerSegment(cursor, begin, LedgerClass.IDLE)
                yield from self._batch(batch, begin, before if last is None else self._cold.get(batch.batch), after)
                cursor, last = batch.ended_ns, batch
        if cursor < until_ns and not (after and after.went_on):
            if last is None and before is not None and before.went_on:  # its batches go on from those before it
                last = next((each for each in reversed(self.batches) if each.ended_ns <= start_ns), None)
            yield from self._tail(cursor, until_ns, last, after)

    def _batch(self, batch: Batch, begin: int, before: Outage | None, after: Outage | None) -> Iterator[LedgerSegment]:
        checkpoint_from = max(begin, batch.ended_ns - batch.checkpoint_ns)
        survived = after if after is not None and after.went_on and after.death_ns < batch.ended_ns else None
        survived = self._absent(batch) or survived
        extra_ns = self.usual.excess_ns(batch) if self.usual and (before or survived) else 0
        if survived:  # a batch that warms up as well has no time of its own for either
            since, kind, outage = (
                (begin, LedgerClass.WARM_UP, before)
                if before and before is not survived
                else (survived.death_ns, LedgerClass.LOST, survived)
            )
            yield from self._spread(
                LedgerSegment(begin, checkpoint_from, kind, batch.batch, outage.fault), since, extra_ns
            )
        else:
            useful_from = min(begin + extra_ns, checkpoint_from)
            if useful_from > begin:
                yield LedgerSegment(
                    begin, useful_from, LedgerClass.WARM_UP, batch.batch, before.fault if before else None
                )
            yield LedgerSegment(useful_from, checkpoint_from, LedgerClass.USEFUL, batch.batch)
        yield LedgerSegment(checkpoint_from, batch.ended_ns, LedgerClass.CHECKPOINT, batch.batch)

    def _absent(self, batch: Batch) -> Outage | None:
        """The outage because of which a batch begins without a host, of several the last."""
        without = [each for each in self.outages if each.back_ns and each.death_ns <= batch.started_ns < each.back_ns]
        return max(without, key=lambda each: each.death_ns, default=None)

    @cached_property
    def _cold(self) -> dict[int, Outage]:
        """By batch with all hosts, the outage whose host works in it for the first time again; of several the last.

        A batch in which another host dies is none: its excess is lost.
        """
        found = dict[int, Outage]()
        for outage in self.outages:
            if outage.back_ns is None:
                continue
            since_ns = outage.back_ns
            first = next((each for each in self.batches if each.records and each.started_ns >= since_ns), None)
            if first and not self._absent(first) and not self._struck(first):
                found[first.batch] = outage
        return found

    def _struck(self, batch: Batch) -> bool:
        return any(each.went_on and batch.started_ns < each.death_ns < batch.ended_ns for each in self.outages)

    def _spread(self, work: LedgerSegment, since: int, extra_ns: int) -> Iterator[LedgerSegment]:
        """Work on a batch of which so much is of the segment's class, evenly from `since` on, and the rest is useful.

        Where the window cuts the batch, it has its part of the excess. If that is more than is left of the batch, the
        batch was slow before, too.
        """
        begin, until, batch = work.start_ns, work.end_ns, work.batch
        since = min(max(begin, since), until)
        before_ns = min(since - begin, max(0, extra_ns - (until - since)))
        yield replace(work, end_ns=begin + before_ns)
        yield LedgerSegment(begin + before_ns, since, LedgerClass.USEFUL, batch)
        share = min(1.0, extra_ns / (until - since)) if until > since else 0.0
        edges = [since, *(edge for edge in self.window if since < edge < until), until]
        for start, end in pairwise(edges):
            extra_until = start + round(share * (end - start))
            yield replace(work, start_ns=start, end_ns=extra_until)
            yield LedgerSegment(extra_until, end, LedgerClass.USEFUL, batch)

    def _tail(self, cursor: int, until_ns: int, last: Batch | None, after: Outage | None) -> Iterator[LedgerSegment]:
        """After the last committed batch: idle until the next was due, and that one lost if a fault cut it off."""
        if after is None:
            yield LedgerSegment(cursor, until_ns, LedgerClass.IDLE)
            return
        due_ns = self._next_start(last) if last else cursor
        attempt = max(cursor, min(until_ns, due_ns))  # the last batch may be that of before a restart
        yield LedgerSegment(cursor, attempt, LedgerClass.IDLE)
        yield LedgerSegment(attempt, until_ns, LedgerClass.LOST, fault=after.fault)

    def _next_start(self, last: Batch) -> int:
        """Spark triggers at multiples of the interval since the epoch, and at once when a batch overran."""
        due = (last.started_ns // self.interval_ns + 1) * self.interval_ns
        return max(last.ended_ns, due)


def outage_segments(outage: Outage, cursor: int, end_ns: int) -> Iterator[LedgerSegment]:
    """An outage from its death, or from the cursor if that is later, to its end or that of the window."""
    death = max(outage.death_ns, cursor)
    notice = max(outage.notice_ns or end_ns, death)
    ready = max(outage.ready_ns or end_ns, notice)
    yield LedgerSegment(death, notice, LedgerClass.DETECT, fault=outage.fault)
    yield LedgerSegment(notice, ready, LedgerClass.RESTART, fault=outage.fault)


def _touches(outage: Outage, batch: Batch) -> bool:
    return outage.death_ns < batch.ended_ns and (outage.ready_ns is None or outage.ready_ns > batch.started_ns)


def clip(segment: LedgerSegment, window: tuple[int, int]) -> LedgerSegment:
    """The part of a segment within the window; one of no length or less if there is none."""
    start, end = max(segment.start_ns, window[0]), min(segment.end_ns, window[1])
    return replace(segment, start_ns=start, end_ns=end)
