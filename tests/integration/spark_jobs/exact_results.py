"""What a job of the testbed must have emitted, computed from its events at once, and what it has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from experiments.workloads import NexmarkQuery
from spark_jobs.dataflow.runtime.job import Job
from spark_jobs.dataflow.runtime.sinks import published
from spark_jobs.dataflow.runtime.sources import stream_of
from workloads.nexmark.stream import events
from workloads.schedule import Schedule

NS_PER_MS = 10**6


def exact(job: Job) -> Counter[tuple]:
    """The rows of Q1 or Q12, columns as the query emits them."""
    bids = events(stream_of(job.workload, Schedule(job.input.start_ns, job.input.rate)), 0, job.input.events).bids
    due_ms, bidders = bids["date_time"].to_pylist(), bids["bidder"].to_pylist()
    if job.workload.query is NexmarkQuery.Q12:
        size_ms = job.workload.window_ms
        counts = Counter((b, t // size_ms * size_ms * NS_PER_MS) for b, t in zip(bidders, due_ms, strict=True))
        return Counter((*group, count) for group, count in counts.items())
    columns = [bids[name].to_pylist() for name in ("position", "auction", "price", "extra")]
    rows = zip(*columns, due_ms, bidders, strict=True)
    return Counter((p, t * NS_PER_MS, a, b, 908 * price, extra) for p, a, price, extra, t, b in rows)


def emitted(job: Job) -> Counter[tuple]:
    """The rows in the files of its sinks."""
    rows: Counter[tuple] = Counter()
    for table in published(Path(job.output.at)):
        rows.update(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return rows
