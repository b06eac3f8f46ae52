"""Recoveries: each outage, until the progress before the fault is reached and lag is normal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from results.tables.columns import Row
from results.tables.schema import LedgerClass
from spark_jobs.tables.ledger import NS, LedgerSegment, UndisturbedPace, first_after
from spark_jobs.tables.outages import Outage
from spark_jobs.tables.streaming.batches import Batch

LagAt = Callable[[int], float]


@dataclass(frozen=True)
class MeasuredRecovery:
    """One recovery; a time that the run did not see is None.

    ready_ns     the query works at its usual pace again: its restart, and the warm-up of new executors
    restored_ns  the batch that the fault cut off is committed: the progress before the fault is reached
    normal_ns    the lag is back in its normal band
    executor_ns  Spark has the last executor up that the restart waited for; None too where it started none, or where
                 the engine does not tell
    """

    fault: int | None
    faults: int
    death_ns: int
    notice_ns: int | None
    ready_ns: int | None
    restored_ns: int | None
    normal_ns: int | None
    lost_s: float
    executor_ns: int | None = None

    def row(self, number: int) -> Row:
        """The row of this recovery in the table `recoveries`; `number` counts the recoveries of a run from 0."""
        return {
            "recovery": number,
            "fault": self.fault,
            "faults": self.faults,
            "death_ns": self.death_ns,
            "notice_ns": self.notice_ns,
            "ready_ns": self.ready_ns,
            "restored_ns": self.restored_ns,
            "normal_ns": self.normal_ns,
            "detect_s": _between(self.death_ns, self.notice_ns),
            "restart_s": _between(self.notice_ns, self.ready_ns),
            "restore_s": _between(self.ready_ns, self.restored_ns),
            "catch_up_s": _between(self.restored_ns, self.normal_ns),
            "lost_s": self.lost_s,
            "executor_s": _between(self.notice_ns, self.executor_ns),
        }


def recoveries(
    outages: list[Outage],
    follow: Callable[[Outage], MeasuredRecovery],
    batches: list[Batch],
    undisturbed: list[Batch],
    lag_at: LagAt | None,
) -> list[MeasuredRecovery]:
    """One recovery per outage; a fault that strikes before the progress is restored extends the recovery.

    `follow` says how an outage went on as if it were alone. `undisturbed` are the batches of the window that no outage
    touched: they tell which lag is normal.
    """
    found: list[MeasuredRecovery] = []
    struck = frozenset[int | None]()  # the known faults of the last recovery
    for outage in outages:
        recovery, own = follow(outage), outage.struck - {None}
        if found and (found[-1].restored_ns is None or found[-1].restored_ns > outage.death_ns):
            found[-1] = _extended(found[-1], recovery, len(struck & own))
            struck |= own
        else:
            found.append(recovery)
            struck = own
    return _caught_up(found, batches, undisturbed, lag_at) if lag_at else found


def lost_to(outage: Outage, outages: Sequence[Outage], segments: Iterable[LedgerSegment]) -> int:
    """How much work an outage undid [ns], by the ledger; `outages` are all of the run, in order.

    Several outages may have one fault, or none that is known. Then each gets the losses of that fault between
    the end of the outage before it and its own end, and the last one gets the rest.
    """
    lost = [each for each in segments if each.kind is LedgerClass.LOST and each.fault in outage.struck]
    return sum(_lost_to_fault(fault, outage, outages, lost) for fault in outage.struck)


def _lost_to_fault(fault: int | None, outage: Outage, outages: Sequence[Outage], lost: Iterable[LedgerSegment]) -> int:
    same = [each for each in outages if fault in each.struck]
    place = same.index(outage)
    since_ns = same[place - 1].ready_ns or 0 if place else 0
    until_ns = float("inf") if outage.ready_ns is None or outage == same[-1] else outage.ready_ns
    own = (each for each in lost if each.fault == fault and since_ns < each.end_ns <= until_ns)
    return sum(each.end_ns - each.start_ns for each in own)


def by_batches(outage: Outage, batches: list[Batch], lost_ns: int, usual: UndisturbedPace | None) -> MeasuredRecovery:
    """Follow an outage, which undid so much work, to the commit of the batch that it cut off.

    If it cut off none, the commit of the first batch after the restart ends the recovery, also of one without records:
    the ledger ends the warm-up with that batch. A query that was down may begin that batch a moment before the driver
    journals that it is ready.
    """
    first = first_after(batches, outage)
    ready = outage.ready_ns
    if first and ready and usual and (first.started_ns >= ready or not outage.went_on):
        warm_ns = max(first.started_ns, ready) + usual.excess_ns(first)
        ready = max(ready, min(warm_ns, first.ended_ns - first.checkpoint_ns))
    restored = max(first.ended_ns, ready) if first and ready else None
    return MeasuredRecovery(
        outage.fault, outage.faults, outage.death_ns, outage.notice_ns, ready, restored, None, lost_ns / NS
    )


def _extended(earlier: MeasuredRecovery, later: MeasuredRecovery, in_both: int) -> MeasuredRecovery:
    """Both as one recovery; faults that struck in both of them, of which there are so many, count once."""
    return MeasuredRecovery(
        earlier.fault,
        earlier.faults + later.faults - in_both,
        earlier.death_ns,
        earlier.notice_ns,
        later.ready_ns,
        later.restored_ns,
        None,
        earlier.lost_s + later.lost_s,
        earlier.executor_ns if later.executor_ns is None else later.executor_ns,
    )


def _caught_up(
    found: list[MeasuredRecovery], batches: list[Batch], undisturbed: list[Batch], lag_at: LagAt
) -> list[MeasuredRecovery]:
    """Normal is the largest lag at an undisturbed commit before the first fault; without one it stays unknown."""
    before = [lag_at(b.ended_ns) for b in undisturbed if b.ended_ns < min((r.death_ns for r in found), default=0)]
    if not before:
        return found
    normal = max(before)
    return [_with_normal(recovery, batches, lag_at, normal) for recovery in found]


def _with_normal(recovery: MeasuredRecovery, batches: list[Batch], lag_at: LagAt, normal: float) -> MeasuredRecovery:
    restored = recovery.restored_ns
    if restored is None:
        return recovery
    back = next((b.ended_ns for b in batches if b.ended_ns >= restored and lag_at(b.ended_ns) <= normal), None)
    return MeasuredRecovery(**{**recovery.__dict__, "normal_ns": back})


def _between(start_ns: int | None, end_ns: int | None) -> float | None:
    return None if start_ns is None or end_ns is None else (end_ns - start_ns) / NS
