"""Quality of the output: what the sink holds against what the oracle says it should hold, window by window."""

from __future__ import annotations

import json

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from workloads.wordcount.query import position

MS = 1_000_000


def closed(depth: int, watermark_ms: int, committed: dict[str, int]) -> Column:
    """Whether an output record is final, at a workload's depth: nothing that the query reads later can change it.

    With state, that is once the watermark [ms] has passed the window's end. At depth 0, once the input record is
    committed, which `committed` tells as the end offset of each partition.
    """
    if depth:
        return F.col("end_ms") <= watermark_ms
    partition, offset = position("key")
    return offset.cast("long") < F.from_json(F.lit(json.dumps(committed)), "MAP<STRING, LONG>")[partition]


def quality(sink: DataFrame, oracle: DataFrame, final: Column) -> DataFrame:
    """One row per window that has records which are `final`: how many are exact, emitted, lost, duplicated and wrong.

    `sink` and `oracle` have start_ms, end_ms, key and count. A record is known by window and key. Lost: not in the
    sink. Duplicated: copies beyond the first. Wrong: a key with a copy that differs from the exact count, or one
    that should not be there at all.
    """
    record = ["start_ms", "end_ms", "key"]
    copies = sink.groupBy(*record).agg(
        F.count("*").alias("copies"), F.min("count").alias("lowest"), F.max("count").alias("highest")
    )
    both = oracle.withColumnRenamed("count", "exact").join(copies, record, "full")
    both = both.where(final)
    differs = F.col("exact").isNull() | (F.col("lowest") != F.col("exact")) | (F.col("highest") != F.col("exact"))
    return (
        both.groupBy("start_ms", "end_ms")
        .agg(
            F.count("exact").alias("exact"),
            F.coalesce(F.sum("copies"), F.lit(0)).alias("emitted"),
            F.count_if(F.col("copies").isNull()).alias("lost"),
            F.coalesce(F.sum(F.col("copies") - 1), F.lit(0)).alias("duplicated"),
            F.count_if(F.col("copies").isNotNull() & differs).alias("wrong"),
        )
        .select(
            (F.col("start_ms") * MS).alias("window_start_ns"),
            (F.col("end_ms") * MS).alias("window_end_ns"),
            "exact",
            "emitted",
            "lost",
            "duplicated",
            "wrong",
        )
        .orderBy("window_start_ns")
    )
