"""The ledger of a run in which surviving partitions go on: it counts the time of partitions.

In each stretch of the window, a class has the share of the partitions that were in it. A partition that is lost is in
`detect` until that is noticed, and in `restart` until it goes on. What it had done since the checkpoint that it went
back to is `lost`. Idle time and checkpoints are those that the slots report.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from journal.event import Event
from journal.events.testbed import Recovering, Report
from results.tables.schema import LedgerClass
from spark_jobs.tables.dataflow.journal_tables import Piece, merged, piece
from spark_jobs.tables.dataflow.partition_recoveries import PartitionRecovery
from spark_jobs.tables.ledger import LedgerSegment

Share = tuple[LedgerClass, int | None]  # a class and the fault that it is due to
Stretch = tuple[float, float, Share]  # of one partition: from when to when it was in a class
NOTHING_KNOWN = Piece(0, 0, 0.0, 0.0)


def ledger(
    window: tuple[int, int], journal: Sequence[Event], recoveries: Sequence[PartitionRecovery]
) -> list[LedgerSegment]:
    """Contiguous segments that cover the window. Within a stretch the classes stand one after the other."""
    partitions = max((len(event.line) for event in journal if isinstance(event, Recovering)), default=1)
    work, away = list(_work(journal)), list(_away(recoveries))
    moments = {moment for start, end, _ in away for moment in (start, end)}
    moments |= {moment for each in work for moment in (each.start_ns, each.end_ns)}
    edges = [window[0], *sorted(int(each) for each in moments if window[0] < each < window[1]), window[1]]
    found: list[LedgerSegment] = []
    for start_ns, end_ns in pairwise(edges):
        classes = Counter(share for begin, end, share in away if begin <= start_ns and end_ns <= end)
        found += _divided(start_ns, end_ns, _shares(classes, partitions, _beside(work, start_ns)))
    return merged(each for each in found if each.end_ns > each.start_ns)


def _work(journal: Iterable[Event]) -> Iterator[Piece]:
    """The work between any two reports that follow each other in one epoch, of the same slots."""
    reports = [event for event in journal if isinstance(event, Report) and event.epoch > 0]
    for before, after in pairwise(reports):
        if before.epoch == after.epoch and before.slots == after.slots > 0:
            yield piece(before, after)


def _beside(work: Sequence[Piece], at_ns: int) -> Piece:
    """The piece of work at a moment; where there is none, the one before."""
    after = bisect_right(work, at_ns, key=lambda each: each.start_ns)
    return work[max(0, after - 1)] if work else NOTHING_KNOWN


def _away(recoveries: Sequence[PartitionRecovery]) -> Iterator[Stretch]:
    """When partitions were down, and when they did what they had to do again; no partition is twice in a stretch."""
    in_order = sorted(recoveries, key=lambda each: (each.partition, each.left_ns))
    for _, of_one in groupby(in_order, key=lambda each: each.partition):
        rows, free_ns = list(of_one), 0.0
        ends = [*(float(each.left_ns) for each in rows[1:]), float("inf")]
        for each, latest_ns in zip(rows, ends, strict=True):
            fault = each.loss.fault
            ready_ns = latest_ns if each.ready_ns is None else float(each.ready_ns)
            if each.taken_ns is not None:
                yield max(free_ns, each.taken_ns), each.left_ns, (LedgerClass.LOST, fault)
            noticed_ns = max(each.left_ns, each.loss.notice_ns)
            yield max(free_ns, each.left_ns), noticed_ns, (LedgerClass.DETECT, fault)
            yield max(free_ns, noticed_ns), ready_ns, (LedgerClass.RESTART, fault)
            free_ns = ready_ns


def _shares(away: Counter[Share], partitions: int, work: Piece) -> Iterator[tuple[Share, float]]:
    """Each class with its share of a stretch of time; the shares add up to 1."""
    lost = {share: count / partitions for share, count in away.items() if share[0] is LedgerClass.LOST}
    down = {share: count / partitions for share, count in away.items() if share[0] is not LedgerClass.LOST}
    at_work = 1.0 - sum(lost.values()) - sum(down.values())
    yield from ((share, part * (1.0 - work.idle)) for share, part in lost.items())
    yield (LedgerClass.USEFUL, None), at_work * (1.0 - work.idle - work.checkpoint)
    yield (LedgerClass.CHECKPOINT, None), at_work * work.checkpoint
    yield (LedgerClass.IDLE, None), (at_work + sum(lost.values())) * work.idle
    yield from down.items()


def _divided(start_ns: int, end_ns: int, shares: Iterable[tuple[Share, float]]) -> Iterator[LedgerSegment]:
    """The stretch in segments as long as their shares; the last one ends with it."""
    booked, at_ns, rows = 0.0, start_ns, list(shares)
    for number, ((kind, fault), share) in enumerate(rows, 1):
        booked += share
        until_ns = end_ns if number == len(rows) else start_ns + round(booked * (end_ns - start_ns))
        yield LedgerSegment(at_ns, until_ns, kind, fault=fault)
        at_ns = until_ns
