"""Recoveries of partitions of the testbed: from the loss of a slot until each has reached its earlier progress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from journal.event import Event
from journal.events.testbed import (
    CheckpointStored,
    EpochReady,
    PartitionLoaded,
    PartitionReached,
    Recovering,
    Report,
)
from results.tables.columns import Row
from results.tables.testbed import RecoveredHow
from spark_jobs.tables.ledger import NS
from spark_jobs.tables.losses import Loss, with_losses

RATE_NS = (2 * NS, 10 * NS)  # the rate of a partition is taken over at least and at most so long before it was lost


@dataclass(frozen=True)
class PartitionRecovery:
    """One partition in one recovery of the run; a time that the run did not see is None.

    epoch      of the recovery; None if the partition was not restored
    left_ns    when it ended where it was: with its slot, or as it was told to roll back
    taken_ns   when the checkpoint was taken that it rolled back to
    rate       records that it had processed per second before
    """

    partition: str
    epoch: int | None
    how: RecoveredHow
    loss: Loss
    left_ns: int
    ready_ns: int | None = None
    reached_ns: int | None = None
    taken_ns: int | None = None
    rate: float | None = None
    loaded: PartitionLoaded | None = None
    reached: PartitionReached | None = None

    @property
    def checkpoint_age_s(self) -> float | None:
        """How old its checkpoint was when the partition was lost, or rolled back [s]."""
        return None if self.taken_ns is None else max(0, self.left_ns - self.taken_ns) / NS

    def row(self) -> Row:
        """Its row in the table `partition_recoveries`."""
        return {
            "fault": self.loss.fault,
            "epoch": self.epoch,
            "partition": self.partition,
            "how": self.how.value,
            "death_ns": self.loss.death_ns,
            "notice_ns": self.loss.notice_ns,
            "ready_ns": self.ready_ns,
            "reached_ns": self.reached_ns,
            "checkpoint_age_s": self.checkpoint_age_s,
            "rate": self.rate,
            "replayed_records": self.reached.records if self.reached else None,
            "replayed_bytes": self.reached.size_bytes if self.reached else None,
            "loaded_bytes": self.loaded.size_bytes if self.loaded else None,
            "load_s": self.loaded.seconds if self.loaded else None,
        }


class _Known:
    """What a journal tells of recoveries, by epoch and by partition."""

    def __init__(self, journal: Iterable[Event], lost: Sequence[Loss]) -> None:
        self.lost = lost
        self.ready_ns: dict[int, int] = {}
        self.loaded: dict[tuple[str, int], PartitionLoaded] = {}
        self.reached: dict[tuple[str, int], PartitionReached] = {}
        self.reports: list[Report] = []
        self.stored: list[CheckpointStored] = []
        for event in journal:
            match event:
                case EpochReady():
                    self.ready_ns.setdefault(event.epoch, event.at_ns)
                case PartitionLoaded():
                    self.loaded[event.partition, event.epoch] = event
                case PartitionReached():
                    self.reached[event.partition, event.epoch] = event
                case Report():
                    self.reports.append(event)
                case CheckpointStored():
                    self.stored.append(event)

    def went_on_ns(self, partition: str, recovery: Recovering) -> int | None:
        """When the partition went on; None if it was lost again before, or its state never came."""
        ready_ns = self.ready_ns.get(recovery.epoch)
        has_state = partition in recovery.promoted or (partition, recovery.epoch) in self.loaded
        if ready_ns is None or not has_state:
            return None
        again = (loss for loss in self.lost if recovery.at_ns < loss.notice_ns < ready_ns)
        return None if any(partition in loss.partitions for loss in again) else ready_ns

    def taken_ns(self, recovery: Recovering, partition: str) -> int | None:
        """When the checkpoint of the line was taken.

        A slot that died may not have told. If all of the line have one number, they were taken at one border.
        """
        number = recovery.line[partition]
        if number == 0:
            return min(self.ready_ns.values(), default=None)
        told = [each for each in self.stored if each.number == number and each.at_ns <= recovery.at_ns]
        own = [_taken_ns(each) for each in told if each.partition == partition]
        if own:
            return own[-1]
        is_one_border = set(recovery.line.values()) == {number}
        return round(median(map(_taken_ns, told))) if told and is_one_border else None

    def rate(self, partition: str, before_ns: int) -> float | None:
        """Records that a partition processed per second by the last reports before a moment; None if too few tell."""
        told = [(report.at_ns, count) for report in self.reports if (count := _count(report, partition)) is not None]
        span: list[tuple[int, int]] = []
        for at_ns, count in reversed([each for each in told if each[0] <= before_ns]):
            if span and (count > span[-1][1] or span[0][0] - at_ns > RATE_NS[1]):
                break
            span.append((at_ns, count))
        if not span or (length_ns := span[0][0] - span[-1][0]) < RATE_NS[0]:
            return None
        return (span[0][1] - span[-1][1]) / length_ns * NS


def _taken_ns(stored: CheckpointStored) -> int:
    return stored.at_ns - round(stored.seconds * NS) if stored.taken_ns is None else stored.taken_ns


def _count(report: Report, partition: str) -> int | None:
    """How many records a partition has processed; of a source, how far it has read."""
    if partition in report.positions:
        return report.positions[partition]
    return report.tallies[partition]["records_in"] if partition in report.tallies else None


def partition_recoveries(journal: Sequence[Event], lost: Sequence[Loss]) -> list[PartitionRecovery]:
    """Every partition of every recovery except the start, in the order in which the recoveries began; then partitions
    that were not restored.

    A partition that is lost again before it was restored belongs to the first loss. One that rolls back although it
    was not lost belongs to the last.
    """
    known = _Known(journal, lost)
    found: list[PartitionRecovery] = []
    down: dict[str, Loss] = {}
    last: Loss | None = None
    for event in with_losses(journal, lost):
        if isinstance(event, Loss):
            last = event
            down = dict.fromkeys(event.partitions, last) | down
        elif isinstance(event, Recovering) and last is not None:
            for partition in event.promoted:
                of = down.pop(partition, last)
                begun = PartitionRecovery(partition, event.epoch, RecoveredHow.PROMOTED, of, of.death_ns)
                found.append(replace(_followed(begun, event, known), taken_ns=None))
            for partition in event.restored:
                loss = down.pop(partition, None)
                how = RecoveredHow.ROLLED_BACK if loss is None else RecoveredHow.RESTORED
                left_ns = event.at_ns if loss is None else loss.death_ns
                begun = PartitionRecovery(partition, event.epoch, how, loss or last, left_ns)
                found.append(_followed(begun, event, known))
    return found + [PartitionRecovery(p, None, RecoveredHow.LOST, loss, loss.death_ns) for p, loss in down.items()]


def _followed(begun: PartitionRecovery, recovery: Recovering, known: _Known) -> PartitionRecovery:
    """With what the journal tells of it later. It has not arrived before it may go, even if nothing is to be done."""
    at = begun.partition, recovery.epoch
    reached, ready_ns = known.reached.get(at), known.went_on_ns(begun.partition, recovery)
    arrived_ns = max(reached.at_ns, ready_ns) if reached and ready_ns else None
    return replace(
        begun,
        ready_ns=ready_ns,
        reached_ns=arrived_ns,
        taken_ns=known.taken_ns(recovery, begun.partition),
        rate=known.rate(begun.partition, begun.left_ns),
        loaded=known.loaded.get(at),
        reached=reached if arrived_ns else None,
    )
