"""Latency of the input records, from when each was due to the commit of the batch that held it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.tables.batches import MS, Batch

QUANTILES = {"p50_s": 0.5, "p99_s": 0.99, "p999_s": 0.999}


def latency(records: DataFrame, batches: list[Batch], window: tuple[int, int]) -> DataFrame:
    """Latency percentiles by second in which the records were committed, counted from the window's start.

    `records` has partition, offset and due_ms. By the second of the commit, as an onlooker at the sink sees it: an
    outage shows as seconds without any, then as late records.
    """
    delayed = records.groupBy("partition").applyInArrow(_commit_times(batches), "committed_ms long, due_ms long")
    start_ms, end_ms = window[0] // MS, window[1] // MS
    second = F.floor((F.col("committed_ms") - start_ms) / 1000)
    delay = (F.col("committed_ms") - F.col("due_ms")) / 1000
    inside = delayed.where((F.col("committed_ms") >= start_ms) & (F.col("committed_ms") < end_ms))
    by_second = inside.groupBy(second.alias("second"))
    percentiles = [F.percentile(delay, share).alias(name) for name, share in QUANTILES.items()]
    return by_second.agg(F.count("*").alias("records"), *percentiles).orderBy("second")


def _commit_times(batches: list[Batch]) -> Callable[[pa.Table], pa.Table]:
    """For the records of one partition: the commit time of the batch whose offsets hold each."""
    ends = {p: [] for batch in batches for p in batch.offsets}
    commits = {p: [] for p in ends}
    for batch in sorted(batches, key=lambda b: b.batch):
        for partition, (_, end) in batch.offsets.items():
            ends[partition].append(end)
            commits[partition].append(batch.ended_ns // MS)

    def assign(table: pa.Table) -> pa.Table:
        partition = str(table["partition"][0].as_py())
        index = np.searchsorted(ends[partition], table["offset"].to_numpy(), side="right")
        committed = np.asarray(commits[partition], dtype=np.int64)[index]
        return pa.table({"committed_ms": committed, "due_ms": table["due_ms"]})

    return assign
