"""The committed micro-batches of a run: when each ran, the cost of its checkpoint, and the order of its stages."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spark_jobs.streaming.progress import MicroBatch, Place
from spark_jobs.tables.streaming.query_events import STAGE_ENDED, STARTED, Attempt, of_query

MS = 1_000_000  # nanoseconds


@dataclass(frozen=True)
class Commit:
    """A moment at which the results of `records` more records were out for good: of all before `ends` in a partition.

    Partitions that are not in `ends` are where they were. `made_up`: as that of a batch.
    """

    at_ns: int
    records: int
    ends: Mapping[Place, int]
    made_up: bool = False


@dataclass(frozen=True)
class Batch:
    """One committed micro-batch; `checkpoint_ns` is the part of it that was spent on the checkpoint.

    None where the engine does not measure it. `made_up`: its report died with its driver (`MicroBatch`).
    """

    batch: int
    started_ns: int
    ended_ns: int
    checkpoint_ns: int
    records: int
    wal_s: float | None
    commit_log_s: float | None
    state_commit_s: float
    state_rows: int | None
    state_bytes: int
    offsets: dict[Place, tuple[int, int]]
    stages: int | None
    hop_delay_s: float | None
    made_up: bool = False

    @property
    def commit(self) -> Commit:
        """Its end, when all that it read was committed."""
        ends = {place: end for place, (_, end) in self.offsets.items()}
        return Commit(self.ended_ns, self.records, ends, self.made_up)

    @property
    def processing_ns(self) -> int:
        """The time that the batch took, without that for checkpoints [ns]."""
        return self.ended_ns - self.started_ns - self.checkpoint_ns


@dataclass(frozen=True)
class StageChain:
    """The stages of one batch: how many, and the mean delay from the end of one to the start of the next [s]."""

    stages: int
    hop_delay_s: float | None


def batches(
    reported: Iterable[MicroBatch],
    chains: dict[int, StageChain],
    side_by_side: int,
    topics: Container[str] | None = None,
) -> list[Batch]:
    """Every committed batch in order, from the reports of the query.

    `topics`: those whose records count; an own job may read others beside its input. None: all.
    """
    found = (batch for batch in reported if batch.has_run)
    return [
        _batch(
            each,
            each.offsets if topics is None else each.offsets_of(topics),
            chains.get(each.batch_id),
            side_by_side,
        )
        for each in found
    ]


def _batch(
    reported: MicroBatch, read: dict[Place, tuple[int, int]], chain: StageChain | None, side_by_side: int
) -> Batch:
    durations = reported.duration_ms
    started_ns = round(datetime.fromisoformat(reported.timestamp).timestamp() * 1000) * MS
    return Batch(
        batch=reported.batch_id,
        started_ns=started_ns,
        ended_ns=started_ns + reported.total_ms * MS,
        checkpoint_ns=round(reported.checkpoint_ms(side_by_side) * MS),
        records=sum(end - start for start, end in read.values()),
        wal_s=_seconds(durations.get("walCommit")),
        commit_log_s=_seconds(durations.get("commitOffsets")),
        state_commit_s=reported.state_commit_ms(side_by_side) / 1e3,
        state_rows=sum(operator.num_rows_total for operator in reported.state_operators),
        state_bytes=sum(operator.memory_used_bytes for operator in reported.state_operators),
        offsets=read,
        stages=chain.stages if chain else None,
        hop_delay_s=chain.hop_delay_s if chain else None,
        made_up=reported.made_up,
    )


def _seconds(reported_ms: int | None) -> float | None:
    return None if reported_ms is None else reported_ms / 1e3


def chains(events: Iterable[dict[str, Any]], query_id: str) -> dict[int, StageChain]:
    """From the Spark event log (job starts and stage completions): how each batch of the query was chained.

    A batch that a fault cut off ran more than once: only the jobs of its last attempt count. The logs of several
    drivers may come in any order.
    """
    last: dict[int, tuple[int, Attempt]] = {}  # by batch: when its last job began, and in which attempt
    spans: dict[Attempt, list[tuple[int, int]]] = defaultdict(list)
    for attempt, event in of_query(events, query_id):
        if event["Event"] == STARTED:
            last[attempt.batch] = max(last.get(attempt.batch, (0, attempt)), (event["Submission Time"], attempt))
        elif event["Event"] == STAGE_ENDED and _ran(stage := event["Stage Info"]):
            spans[attempt].append((stage["Submission Time"], stage["Completion Time"]))
    attempts = {batch: sorted(spans[attempt]) for batch, (_, attempt) in last.items()}
    return {batch: _chain(found) for batch, found in attempts.items() if found}


def _ran(stage: dict[str, Any]) -> bool:
    """Whether a completed stage did its work: not one that failed, or whose retry found that nothing was left to do."""
    return "Failure Reason" not in stage and "Submission Time" in stage


def _chain(spans: list[tuple[int, int]]) -> StageChain:
    gaps = [max(0, later[0] - earlier[1]) for earlier, later in itertools.pairwise(spans)]
    return StageChain(len(spans), sum(gaps) / len(gaps) / 1e3 if gaps else None)
