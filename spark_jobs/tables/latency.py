"""Latency of the input records, from when each was due until its result could be seen.

Micro-batches show their results by their commit, a query in real-time mode as soon as it has them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.streaming.progress import Place
from spark_jobs.tables.streaming.batches import MS, Batch
from workloads.results import position

QUANTILES = {"p50_s": 0.5, "p99_s": 0.99, "p999_s": 0.999}


def latency(seen: DataFrame, window: tuple[int, int]) -> DataFrame:
    """Latency percentiles by second in which the records were seen, counted from the window's start.

    `seen` has seen_ms and due_ms of every record. By the second in which an onlooker sees the result: an outage
    shows as seconds without any, then as late records.
    """
    start_ms, end_ms = window[0] // MS, window[1] // MS
    second = F.floor((F.col("seen_ms") - start_ms) / 1000)
    delay = (F.col("seen_ms") - F.col("due_ms")) / 1000
    inside = seen.where((F.col("seen_ms") >= start_ms) & (F.col("seen_ms") < end_ms))
    by_second = inside.groupBy(second.alias("second"))
    percentiles = [F.percentile(delay, share).alias(name) for name, share in QUANTILES.items()]
    return by_second.agg(F.count("*").alias("records"), *percentiles).orderBy("second")


def seen_at_commit(records: DataFrame, batches: list[Batch]) -> DataFrame:
    """Records (topic, partition, offset, due_ms) as seen when the batch that held each was committed."""
    return records.groupBy("topic", "partition").applyInArrow(_commit_times(batches), "seen_ms long, due_ms long")


def seen_in_sink(sink: DataFrame) -> DataFrame:
    """Input records of a query of depth 0 as seen when the last of their results first came to the sink.

    `sink` has start_ms, key and arrived_ms. A copy that a restarted batch wrote is not the first. A record without
    results is never seen.
    """
    first = sink.groupBy("start_ms", "key").agg(F.min("arrived_ms").alias("first_ms"))
    whole = first.groupBy("start_ms", *position("key")).agg(F.max("first_ms").alias("seen_ms"))
    return whole.select("seen_ms", F.col("start_ms").alias("due_ms"))


def _commit_times(batches: list[Batch]) -> Callable[[pa.Table], pa.Table]:
    """For the records of one partition: the commit time of the batch whose offsets hold each."""
    ends: dict[Place, list[int]] = {place: [] for batch in batches for place in batch.offsets}
    commits: dict[Place, list[int]] = {place: [] for place in ends}
    for batch in sorted(batches, key=lambda b: b.batch):
        for place, (_, end) in batch.offsets.items():
            ends[place].append(end)
            commits[place].append(batch.ended_ns // MS)

    def assign(table: pa.Table) -> pa.Table:
        place = (table["topic"][0].as_py(), str(table["partition"][0].as_py()))
        index = np.searchsorted(ends[place], table["offset"].to_numpy(), side="right")
        committed = np.asarray(commits[place], dtype=np.int64)[index]
        return pa.table({"seen_ms": committed, "due_ms": table["due_ms"]})

    return assign
