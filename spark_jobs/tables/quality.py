"""Compares the output of the sink with that of the oracle, window by window."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from experiments.workloads.base import INPUT
from experiments.workloads.catalogue import WorkloadSpec
from workloads.results import committed

MS = 1_000_000


def closed(workload: WorkloadSpec, watermark_ms: int, ends: dict[str, dict[str, int]]) -> Column:
    """Whether a result of the workload is final: nothing that the query reads later can change it.

    That of single records once they are committed, which `ends` tells as the end offset of each partition; that of
    a window once the watermark [ms] has passed its end, and the time that the query needs to settle.
    """
    if workload.by_record:
        return committed("key", ends.get(INPUT, {}))
    return F.col("end_ms") <= watermark_ms - workload.settling_ms


def committed_until_ms(records: DataFrame, ends: dict[str, dict[str, int]]) -> int:
    """Until when [ms] all records that were due are committed, of committed ones (topic, partition, due_ms).

    Where a query has no watermark this stands for it: each partition is read in the order in which records were due.
    `ends` has every partition that is read, by topic. If nothing of one is committed, this is not known of any moment.
    """
    if not all(end for partitions in ends.values() for end in partitions.values()):
        return 0
    last = records.groupBy("topic", "partition").agg(F.max("due_ms").alias("due_ms"))
    (until,) = last.agg(F.min("due_ms")).collect()
    return until[0] or 0


def quality(sink: DataFrame, oracle: DataFrame, final: Column, *, by_second: bool = False) -> DataFrame:
    """One row per window that has records which are `final`: how many are exact, emitted, lost, duplicated and wrong.

    `by_second`: one row per second instead, for results of single records, which are windows of no length.

    `sink` and `oracle` are results (`workloads.results`). A record is known by window and key, and is in the oracle as
    often as it should be, mostly once. Lost: not in the sink so often. Duplicated: more often, or more than once if it
    should not be there. Wrong: a key with a copy that differs from the exact value or has none, or one that should not
    be there at all. What has no window or no key is no result, so it is wrong whenever it came: nothing makes it right
    later. A bound that it lacks counts as 0.
    """
    record = ["start_ms", "end_ms", "key"]
    wanted = oracle.groupBy(*record).agg(F.count("*").alias("wanted"), F.max("value").alias("exact"))
    copies = sink.groupBy(*record).agg(
        F.count("*").alias("copies"),
        F.count("value").alias("valued"),
        F.min("value").alias("lowest"),
        F.max("value").alias("highest"),
    )
    is_no_result = F.col("start_ms").isNull() | F.col("end_ms").isNull() | F.col("key").isNull()
    both = wanted.join(copies, record, "full").fillna(0, ["wanted", "copies"]).where(is_no_result | final)
    both = both.fillna(0, ["start_ms", "end_ms"])
    due, found = F.col("wanted"), F.col("copies")
    # Aggregates skip nulls, and a comparison with null is neither true nor false: values that lack are counted apart.
    differs = (
        F.col("exact").isNull()
        | (F.col("valued") < found)
        | (F.col("lowest") != F.col("exact"))
        | (F.col("highest") != F.col("exact"))
    )
    if by_second:
        start_ms = F.floor(F.col("start_ms") / 1000).cast("long") * 1000
        both = both.withColumns({"start_ms": start_ms, "end_ms": start_ms + 1000})
    return (
        both.groupBy("start_ms", "end_ms")
        .agg(
            F.sum(due).alias("exact"),
            F.sum(found).alias("emitted"),
            F.sum(F.greatest(due - found, F.lit(0))).alias("lost"),
            F.sum(F.greatest(found - F.greatest(due, F.lit(1)), F.lit(0))).alias("duplicated"),
            F.count_if((found > 0) & differs).alias("wrong"),
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
