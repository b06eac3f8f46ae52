"""The input topic of a workload, as far as queries and oracles read what Spark's Kafka source has of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from workloads.schedule import Schedule

SCHEMA = "value binary, partition int, offset long, timestamp timestamp"


def rows_of(values: Sequence[bytes | None], schedule: Schedule) -> list[tuple[bytes | None, int, int, datetime]]:
    """The first records of the topic: each value with its partition, its offset, and when it was due."""
    width = schedule.partitions
    return [
        (value, p % width, p // width, datetime.fromtimestamp(schedule.due_ms(p) / 1000, UTC))
        for p, value in enumerate(values)
    ]


def topic(spark: SparkSession, values: Sequence[bytes | None], schedule: Schedule) -> DataFrame:
    """The first records of the topic as a DataFrame."""
    return spark.createDataFrame(rows_of(values, schedule), SCHEMA)
