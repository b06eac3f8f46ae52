"""The oracle of the cyclic workload, and the sums of the query's changes, in the form of all results.

The one window of these results has no length and lies at 0: they belong to no time. Each path is there as often as
there are ways along its nodes, by links between the same two.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from experiments.workloads.catalogue import ReachabilitySpec
from workloads.checked_events import events
from workloads.reachability.input import paths

FIELDS = {
    "link": "link LONG, start LONG, end LONG, change LONG",
    "source": "root LONG, node LONG, path STRING, change LONG",
}
PATH, LESS_THAN_NONE, UNREADABLE = "path", "less than none", "unreadable"
RESULTS = pa.schema([("start_ms", pa.int64()), ("end_ms", pa.int64()), ("key", pa.string()), ("value", pa.string())])


def oracle(records: DataFrame, spec: ReachabilitySpec) -> DataFrame:
    """Every path in the graph that these events leave, found by a search in this process."""
    found = paths(_remaining(records, "link", "start", "end"), _remaining(records, "source", "root", "node"))
    copies = [(f"{root} {path}", times) for (root, _, path), times in found.items() for _ in range(abs(times))]
    keys, values = [key for key, _ in copies], [PATH if times > 0 else LESS_THAN_NONE for _, times in copies]
    columns = ([0] * len(keys), [0] * len(keys), keys, values)
    return records.sparkSession.createDataFrame(pa.table(list(columns), schema=RESULTS))


def collected(changes: DataFrame) -> DataFrame:
    """The paths that the changes in the output topic add up to: each as often as it is there.

    One that is there less than no times is in it with another value. That is right where a deletion was read whose
    creation was not, since partitions of the input need not end together; else a change is missing or came twice.

    One with a change that cannot be read is in it with a value that is never right, so that the comparison with the
    oracle sees it: a sum skips what is null.
    """
    record = ["start_ms", "end_ms", "key"]
    change = F.expr("try_cast(value AS BIGINT)")
    times = F.sum(change).alias("times")
    unreadable = (F.count("*") - F.count(change)).alias("unreadable")
    sums = changes.groupBy(*record).agg(times, unreadable, F.max("arrived_ms").alias("arrived_ms"))
    sums = sums.where("times <> 0 OR unreadable > 0 OR key IS NULL")
    known = F.when(F.col("times") > 0, PATH).otherwise(LESS_THAN_NONE)
    value = F.when(F.col("unreadable") > 0, UNREADABLE).otherwise(known).alias("value")
    copies = F.explode(F.sequence(F.lit(1), F.greatest(F.abs("times"), F.lit(1)))).alias("copy")
    return sums.select(*record, value, "arrived_ms", copies).drop("copy")


def _remaining(records: DataFrame, kind: str, *place: str) -> pa.Table:
    """How often a link or source is there in the end, but for those that are there as often as they were deleted."""
    read = events(records, FIELDS).where(F.col("event.kind") == kind)
    columns = [F.col(f"event.{name}").alias(name) for name in place]
    sums = read.groupBy(*columns).agg(F.sum("event.change").alias("change"))
    return sums.where("change <> 0").toArrow()
