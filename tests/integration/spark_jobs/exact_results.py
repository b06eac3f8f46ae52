"""What a job of the testbed must have emitted, computed from its events at once, and what it has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

from experiments.workloads import NexmarkQuery
from spark_jobs.dataflow.runtime.job import InputKind, Job
from spark_jobs.dataflow.runtime.sinks import published
from spark_jobs.dataflow.runtime.sources import Generated, stream_of
from workloads.nexmark.stream import Stream, events_of
from workloads.schedule import Schedule

NS_PER_MS = 10**6


def exact(job: Job, positions: dict[str, int] | None = None) -> Counter[tuple]:
    """The rows of Q1 or Q12 for the first `job.input.events`, or for what sources at these positions have read.

    Columns are as the query emits them.
    """
    stream = stream_of(job.workload, Schedule(job.input.start_ns, job.input.rate))
    bids = events_of(stream, "bids", 0, job.input.events) if positions is None else _read(job, stream, positions)
    due_ms, bidders = bids["date_time"].to_pylist(), bids["bidder"].to_pylist()
    if job.workload.query is NexmarkQuery.Q12:
        size_ms = job.workload.window_ms
        counts = Counter((b, t // size_ms * size_ms * NS_PER_MS) for b, t in zip(bidders, due_ms, strict=True))
        return Counter((*group, count) for group, count in counts.items())
    columns = [bids[name].to_pylist() for name in ("position", "auction", "price", "extra")]
    rows = zip(*columns, due_ms, bidders, strict=True)
    return Counter((p, t * NS_PER_MS, a, b, 908 * price, extra) for p, a, price, extra, t, b in rows)


def _read(job: Job, stream: Stream, positions: dict[str, int]) -> pa.RecordBatch:
    """A position counts blocks of events, or events in Kafka; the n-th of partition i is number n P + i of all."""
    size = 1 if job.input.kind is InputKind.KAFKA else Generated.block_events(job.input.rate)
    ends = np.array([positions[f"bids.{index}"] for index in range(job.parallelism)])
    bids = events_of(stream, "bids", 0, int(max(ends)) * size * job.parallelism)
    number = bids["position"].to_numpy() // size
    return bids.filter(pa.array(number // job.parallelism < ends[number % job.parallelism]))


def emitted(job: Job) -> Counter[tuple]:
    """The rows in the files of its sinks."""
    rows: Counter[tuple] = Counter()
    for table in published(Path(job.output.at)):
        rows.update(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return rows
