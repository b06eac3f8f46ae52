"""Checks that the archive has the whole input: a record at each offset up to where the query has read."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from experiments.errors import EnvironmentFailure
from spark_jobs.tables.batched_messages import Ends
from workloads.topics import message_place


def require_all(records: DataFrame, ends: Ends, batch_records: int | None) -> None:
    """Raises `EnvironmentFailure` with the place of the first message of a partition that is not there.

    A topic is read from the earliest message that it has, and offsets without a message are passed over. Neither is an
    error to Spark, but the exact output would lack these records.

    records        topic, partition and offset of all that were found, each before the end of its partition
    batch_records  events in a message; None: each is a message
    """
    counts = {(each.topic, each.partition): each.found for each in _counted(records).collect()}
    for topic, of_topic in ends.items():
        for partition, end in of_topic.items():
            found = counts.get((topic, int(partition)), 0)
            if found < end:
                offset = _first_missing(records, topic, int(partition), end) // (batch_records or 1)
                lack = f"no message has this offset; {end - found} of {end} records are missing"
                cause = f"{message_place(topic, partition, offset)}: {lack}"
                raise EnvironmentFailure(cause, "start again, with a topic that keeps all messages until the run ends")


def _counted(records: DataFrame) -> DataFrame:
    return records.groupBy("topic", "partition").agg(F.count("*").alias("found"))


def _first_missing(records: DataFrame, topic: str, partition: int, end: int) -> int:
    there = records.where((F.col("topic") == topic) & (F.col("partition") == partition))
    wanted = records.sparkSession.range(end).withColumnRenamed("id", "offset")
    (missing,) = wanted.join(there, "offset", "left_anti").agg(F.min("offset")).collect()
    return int(missing[0])
