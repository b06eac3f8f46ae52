"""A record that is missing from the archived input is noticed, wherever it is, and named with its place."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from experiments.errors import EnvironmentFailure
from spark_jobs.tables.complete_input import require_all

pytestmark = pytest.mark.extended

ENDS = {"input": {"0": 6, "1": 4, "2": 0}, "more": {"0": 3}}


def found(spark: SparkSession, *missing: tuple[str, int, int]) -> DataFrame:
    rows = [
        (topic, int(partition), offset, 0)
        for topic, of_topic in ENDS.items()
        for partition, end in of_topic.items()
        for offset in range(end)
        if (topic, int(partition), offset) not in missing
    ]
    return spark.createDataFrame(rows, "topic string, partition int, offset long, due_ms long")


def test_whole_input_is_accepted(spark: SparkSession) -> None:
    require_all(found(spark), ENDS, None)


@pytest.mark.parametrize(
    ("missing", "place", "lack"),
    [
        ([("input", 0, 0), ("input", 0, 1)], "the topic input, partition 0, offset 0", "2 of 6"),
        ([("input", 1, 2)], "the topic input, partition 1, offset 2", "1 of 4"),
        ([("input", 0, 5)], "the topic input, partition 0, offset 5", "1 of 6"),
        ([("more", 0, offset) for offset in range(3)], "the topic more, partition 0, offset 0", "3 of 3"),
    ],
    ids=["head", "amid", "tail", "all"],
)
def test_missing_records_are_named(
    spark: SparkSession, missing: list[tuple[str, int, int]], place: str, lack: str
) -> None:
    with pytest.raises(EnvironmentFailure, match=rf"^{place}: no message has this offset; {lack} records are missing"):
        require_all(found(spark, *missing), ENDS, None)


def test_of_batches_the_offset_is_that_of_the_message(spark: SparkSession) -> None:
    with pytest.raises(EnvironmentFailure, match=r"partition 0, offset 2: .* 2 of 6 records"):
        require_all(found(spark, ("input", 0, 4), ("input", 0, 5)), ENDS, 2)
