"""The journal of the testbed's driver in the terms of the other tables: batches, losses, the ledger.

The commit advances when all output up to a line of checkpoints is published (`committed` in the journal). Between two
such moments, an interval apart at least, lies what stands for a batch here: its records, and what its checkpoints cost.
Slots report twice a second how far they have read, and how long they were idle and busy with checkpoints.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from statistics import median

from experiments.workloads.base import INPUT
from journal.event import Event
from journal.events.testbed import (
    CheckpointStored,
    Committed,
    EpochReady,
    ExecutorsUp,
    Finished,
    Positions,
    Recovering,
    Report,
    RoundStarted,
    RoundStored,
)
from results.tables.columns import Row
from results.tables.schema import LedgerClass
from spark_jobs.tables.dataflow.partition_recoveries import PartitionRecovery
from spark_jobs.tables.ledger import FEWEST_STEADY, NS, LedgerSegment, UndisturbedPace, clip, outage_segments
from spark_jobs.tables.outages import Outage
from spark_jobs.tables.recoveries import MeasuredRecovery
from spark_jobs.tables.streaming.batches import Batch, Commit
from testbed.source_positions import events_read, offsets

END_OF_TIME_MS = 2**62
CHECKPOINT_COLUMNS = ("partition", "number", "seconds", "size_bytes", "forced")
LEAST_SHARE = 0.75  # of the interval: lines that follow each other faster belong to one batch


@dataclass(frozen=True)
class Piece:
    """The work between two reports: from how many events read to how many, and which shares of it were not useful."""

    start_ns: int
    end_ns: int
    read_from: float
    read_to: float
    idle: float = 0.0
    checkpoint: float = 0.0

    def read_at(self, at_ns: int) -> float:
        """How many events were read by a moment [UTC ns], if they are read evenly."""
        passed = (at_ns - self.start_ns) / (self.end_ns - self.start_ns) if self.end_ns > self.start_ns else 0.0
        return self.read_from + passed * (self.read_to - self.read_from)

    def when(self, read: float) -> int:
        """When `read` events were read; its start or end if that was before or after."""
        if read <= self.read_from or self.read_to <= self.read_from:
            return self.start_ns if read <= self.read_from else self.end_ns
        share = min(1.0, (read - self.read_from) / (self.read_to - self.read_from))
        return self.start_ns + round(share * (self.end_ns - self.start_ns))

    def part(self, start_ns: int, end_ns: int) -> Piece:
        """The piece between these moments, whether they lie within it or not."""
        reads = self.read_at(start_ns), self.read_at(end_ns)
        return replace(self, start_ns=start_ns, end_ns=end_ns, read_from=reads[0], read_to=reads[1])


def pieces(journal: Iterable[Event]) -> list[Piece]:
    """The work between any two reports that follow each other in one epoch."""
    pairs = [(a, b) for a, b in pairwise(_reports(journal)) if a.epoch == b.epoch]
    return [piece(before, after) for before, after in pairs]


def _reports(journal: Iterable[Event]) -> Iterator[Report]:
    """What slots reported while sources read; a source that the first report after a recovery lacks is at the line."""
    line: Positions = {}
    for event in journal:
        match event:
            case Recovering():
                line = event.positions
            case Report() if event.is_running and event.positions:
                yield replace(event, positions={**line, **event.positions})


def piece(before: Report, after: Report) -> Piece:
    """The work between two reports of the same slots."""
    spent_s = (after.at_ns - before.at_ns) / NS * max(after.slots, 1)
    idle = min(1.0, max(0.0, after.idle_s - before.idle_s) / spent_s)
    checkpoint = min(1.0 - idle, max(0.0, after.checkpoint_s - before.checkpoint_s) / spent_s)
    read_from, read_to = events_read(before.positions), events_read(after.positions)
    return Piece(before.at_ns, after.at_ns, read_from, read_to, idle, checkpoint)


def batches(journal: Sequence[Event], interval_ns: int, *, commits: bool) -> list[Batch]:
    """What was committed between one moment and another; if nothing is ever committed, what was read.

    The last one ends when the dataflow has: then everything is published that was read.
    """
    wanted = (Committed if commits else Report, Finished)
    ready_ns = next((event.at_ns for event in journal if isinstance(event, EpochReady)), None)
    if ready_ns is None:
        return []
    work, stored = pieces(journal), [event for event in journal if isinstance(event, CheckpointStored)]
    found: list[Batch] = []
    start_ns, start = ready_ns, dict[str, int]()
    for event in journal:
        if not isinstance(event, wanted) or not event.positions:
            continue
        ends, at_ns = offsets(event.positions), event.at_ns
        if not isinstance(event, Finished) and at_ns - start_ns < LEAST_SHARE * interval_ns:
            continue
        spans = {p: (start.get(p, 0), max(end, start.get(p, 0))) for p, end in ends.items()}
        cost_ns = sum(part.checkpoint * (part.end_ns - part.start_ns) for part in _between(work, start_ns, at_ns))
        size = sum(each.size_bytes for each in stored if start_ns < each.at_ns <= at_ns)
        found.append(_batch(len(found), start_ns, at_ns, round(cost_ns), spans, size))
        start_ns, start = at_ns, start | {p: end for p, (_, end) in spans.items()}  # a report may lack a lost source
    return found


def commits(journal: Iterable[Event]) -> list[Commit]:
    """Every moment at which more was committed, however soon after the one before; the last one as in `batches`."""
    found, ends = list[Commit](), dict[str, int]()
    for event in journal:
        if isinstance(event, Committed | Finished):
            more = {p: end for p, end in offsets(event.positions).items() if end > ends.get(p, 0)}
            if more:
                records = sum(end - ends.get(p, 0) for p, end in more.items())
                found.append(Commit(event.at_ns, records, {(INPUT, p): end for p, end in more.items()}))
                ends |= more
    return found


def _batch(
    number: int, start_ns: int, end_ns: int, cost_ns: int, spans: dict[str, tuple[int, int]], size_bytes: int
) -> Batch:
    return Batch(
        batch=number,
        started_ns=start_ns,
        ended_ns=end_ns,
        checkpoint_ns=min(cost_ns, end_ns - start_ns),
        records=sum(end - start for start, end in spans.values()),
        wal_s=None,
        commit_log_s=None,
        state_commit_s=cost_ns / NS,
        state_rows=None,
        state_bytes=size_bytes,
        offsets={(INPUT, partition): span for partition, span in spans.items()},
        stages=None,
        hop_delay_s=None,
    )


def _between(work: list[Piece], start_ns: int, end_ns: int) -> Iterator[Piece]:
    for piece in work:
        first, last = max(piece.start_ns, start_ns), min(piece.end_ns, end_ns)
        if first < last:
            yield piece.part(first, last)


def ledger(window: tuple[int, int], journal: Sequence[Event], outages: list[Outage]) -> list[LedgerSegment]:
    """Contiguous segments that cover the window.

    Within a piece of work its shares stand one after the other. Lost is what was read before a recovery beyond the line
    that it went to: sources read it again.
    """
    lines = [_line(journal, outage) for outage in outages]
    spans = [[_Work(piece, piece.end_ns) for piece in span] for span in _spans(window, pieces(journal), outages, lines)]
    for number, (outage, line) in enumerate(zip(outages, lines, strict=True)):
        for work in chain.from_iterable(spans[: number + 1]):
            work.roll_back(line, outage)
    segments: list[LedgerSegment] = []
    for span, ending in zip(spans, [*outages, None], strict=True):
        segments += chain.from_iterable(work.segments() for work in span)
        if ending is not None:
            segments += outage_segments(ending, max(ending.death_ns, segments[-1].end_ns if segments else 0), window[1])
    clipped = (clip(segment, window) for segment in segments)
    return merged(segment for segment in clipped if segment.end_ns > segment.start_ns)


@dataclass
class _Work:
    """A piece of work, of which the part from `kept_until_ns` on was lost by a fault."""

    piece: Piece
    kept_until_ns: int
    fault: int | None = None

    def roll_back(self, line: float, outage: Outage) -> None:
        """What was read beyond the line is lost, unless it was before."""
        at_ns = self.piece.when(line)
        if self.piece.read_to > line and at_ns < self.kept_until_ns:
            self.fault = self.fault if self.kept_until_ns < self.piece.end_ns else outage.fault
            self.kept_until_ns = at_ns

    def segments(self) -> Iterator[LedgerSegment]:
        start_ns, end_ns = self.piece.start_ns, self.piece.end_ns
        yield from _shares(start_ns, self.kept_until_ns, self.piece, LedgerClass.USEFUL, None)
        yield from _shares(
            self.kept_until_ns, end_ns, replace(self.piece, checkpoint=0.0), LedgerClass.LOST, self.fault
        )


def _spans(window: tuple[int, int], work: list[Piece], outages: list[Outage], lines: list[float]) -> list[list[Piece]]:
    """The work before each outage and after the last, without gaps: what no report covers is like what is beside it.

    `lines`: how many events are kept by the line to which each outage rolled back.
    """
    starts = [min([window[0], *(piece.start_ns for piece in work)])]
    starts += [outage.ready_ns or max(window[1], outage.death_ns) for outage in outages]
    ends = [*(outage.death_ns for outage in outages), window[1]]
    return [_without_gaps(work, *span) for span in zip(starts, ends, [math.inf, *lines], strict=True)]


def _without_gaps(work: list[Piece], start_ns: int, end_ns: int, line: float) -> list[Piece]:
    """The work between two moments, of which the first is a recovery to this line; infinite if that is not known.

    If the next death came before two reports, nothing is known but that something was read beyond the line.
    """
    inside = list(_between(work, start_ns, end_ns))
    if start_ns >= end_ns:
        return []
    if not inside:
        return [Piece(start_ns, end_ns, line, line + 1) if math.isfinite(line) else Piece(start_ns, end_ns, 0.0, 0.0)]
    found, cursor = list[Piece](), start_ns
    for piece in inside:
        found.append(piece.part(cursor, piece.end_ns) if cursor < piece.start_ns and not found else piece)
        if found[:-1] and found[-2].end_ns < piece.start_ns:
            found[-1] = replace(piece, start_ns=found[-2].end_ns)
        cursor = piece.end_ns
    return [*found[:-1], found[-1].part(found[-1].start_ns, end_ns)]


def _line(journal: Iterable[Event], outage: Outage) -> float:
    """How many events are kept by the line to which an outage rolled back; all, if no recovery began."""
    end_ns = outage.ready_ns or float("inf")
    told = (event for event in journal if isinstance(event, Recovering))
    lines = [event for event in told if outage.death_ns <= event.at_ns <= end_ns]
    return events_read(lines[-1].positions) if lines else float("inf")


def _shares(start_ns: int, end_ns: int, piece: Piece, kind: LedgerClass, fault: int | None) -> Iterator[LedgerSegment]:
    length = end_ns - start_ns
    idle_from = end_ns - round(piece.idle * length)
    checkpoint_from = idle_from - round(piece.checkpoint * length)
    yield LedgerSegment(start_ns, checkpoint_from, kind, fault=fault)
    yield LedgerSegment(checkpoint_from, idle_from, LedgerClass.CHECKPOINT)
    yield LedgerSegment(idle_from, end_ns, LedgerClass.IDLE)


def merged(segments: Iterable[LedgerSegment]) -> list[LedgerSegment]:
    """The segments, of which those that follow each other in one class are one."""
    found: list[LedgerSegment] = []
    for each in segments:
        if found and (found[-1].kind, found[-1].fault) == (each.kind, each.fault):
            found[-1] = replace(found[-1], end_ns=each.end_ns)
        else:
            found.append(each)
    return found


def pace(undisturbed: list[Batch], segments: list[LedgerSegment]) -> UndisturbedPace | None:
    """The usual pace: records by useful time of what no outage touched; None when too little is there to tell."""
    rates = [batch.records / ns for batch in undisturbed if (ns := _useful_ns(batch, segments))]
    return UndisturbedPace(median(rates)) if len(rates) >= FEWEST_STEADY else None


def _useful_ns(batch: Batch, segments: list[LedgerSegment]) -> int:
    overlaps = (
        min(s.end_ns, batch.ended_ns) - max(s.start_ns, batch.started_ns)
        for s in segments
        if s.kind is LedgerClass.USEFUL
    )
    return sum(max(0, overlap) for overlap in overlaps)


def follow(outage: Outage, journal: Sequence[Event], lost_ns: int) -> MeasuredRecovery:
    """An outage, which undid so much work, until as much is read again as ever before the fault struck: an earlier
    fault may have undone work that was not yet done again."""
    work = pieces(journal)
    before = (piece for piece in work if piece.start_ns < outage.death_ns)
    reached = max((piece.read_at(min(outage.death_ns, piece.end_ns)) for piece in before), default=0.0)
    ready_ns = outage.ready_ns
    restored = (
        max(p.when(reached), ready_ns) for p in work if ready_ns and p.start_ns >= ready_ns and p.read_to >= reached
    )
    return _recovery(outage, journal, lost_ns, next(restored, None))


def follow_parts(
    outage: Outage, journal: Sequence[Event], lost_ns: int, recoveries: Sequence[PartitionRecovery]
) -> MeasuredRecovery:
    """An outage of some partitions, which undid so much work, until each of them is as far as it was, and so is each
    that an earlier outage had taken and that was still on its way."""
    until_ns = outage.ready_ns or float("inf")
    last_lives = {each.partition: each for each in recoveries if each.loss.notice_ns <= until_ns}.values()
    behind = [each.reached_ns for each in last_lives if (each.reached_ns or float("inf")) > outage.death_ns]
    reached = [at_ns for at_ns in behind if at_ns is not None]
    restored_ns = max(reached, default=None) if len(reached) == len(behind) else None
    return _recovery(outage, journal, lost_ns, restored_ns)


def _recovery(outage: Outage, journal: Iterable[Event], lost_ns: int, restored_ns: int | None) -> MeasuredRecovery:
    times = (outage.death_ns, outage.notice_ns, outage.ready_ns, restored_ns, None)
    return MeasuredRecovery(outage.fault, outage.faults, *times, lost_ns / NS, _executor_ns(outage, journal))


def _executor_ns(outage: Outage, journal: Iterable[Event]) -> int | None:
    """When Spark had the last executor up that came between the notice of an outage and its end."""
    if outage.notice_ns is None or outage.ready_ns is None:
        return None
    started = (event.at_ns for event in journal if isinstance(event, ExecutorsUp))
    return max((at_ns for at_ns in started if outage.notice_ns <= at_ns <= outage.ready_ns), default=None)


def partition_checkpoints(journal: Sequence[Event], window: tuple[int, int]) -> list[Row]:
    """Every stored checkpoint of a partition, and of `round` every finished round, with how long it took.

    Invalid are those that a recovery left behind it, as `checkmate` counts them.
    """
    found, began = [], dict[tuple[int, int], int]()
    invalid = _left_behind(journal)
    for at, event in enumerate(journal):
        match event:
            case CheckpointStored():
                row = {name: getattr(event, name) for name in CHECKPOINT_COLUMNS}
                row["invalid"] = at in invalid
                found.append(row | _stored(event, window))
            case RoundStarted():
                began[event.epoch, event.number] = event.at_ns
            case RoundStored():
                seconds = (event.at_ns - began[event.epoch, event.number]) / NS
                row = {"partition": "round", "number": event.number, "seconds": seconds}
                found.append(row | {"forced": False, "invalid": False} | _stored(event, window))
    return found


def _stored(event: Event, window: tuple[int, int]) -> Row:
    """When a checkpoint was stored, and whether that was in the window."""
    return {"completed_ns": event.at_ns, "in_window": window[0] <= event.at_ns < window[1]}


def _left_behind(journal: Sequence[Event]) -> set[int]:
    """Where in the journal the checkpoints are whose partition went back next to a line before them."""
    found, next_line = set[int](), dict[str, int]()  # the line by partition
    for at, event in reversed(list(enumerate(journal))):
        match event:
            case Recovering():
                next_line |= {name: number for name, number in event.line.items() if _takes_back(event, name)}
            case CheckpointStored() if next_line.get(event.partition, event.number) < event.number:
                found.add(at)
    return found


def _takes_back(recovery: Recovering, partition: str) -> bool:
    """Whether a partition rolls back in a recovery. Old journals do not say which do: then all."""
    return partition in recovery.restored or not (recovery.restored or recovery.promoted)


def message_overhead(journal: Iterable[Event]) -> float | None:
    """Bytes of messages over their bytes without what is there for the protocol: of channels, before any fault."""
    reports = [event for event in journal if isinstance(event, Report) and event.tallies]
    first = [report for report in reports if report.epoch == reports[0].epoch]
    if not first:
        return None
    tallies = first[-1].tallies.values()
    data, protocol = (sum(each[name] for each in tallies) for name in ("data_bytes", "protocol_bytes"))
    return (data + protocol) / data if data else None
