"""Latency of hand-made records: from due time to the commit of their batch, by second of the commit."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.tables.dataflow.relative_latency import slides
from spark_jobs.tables.latency import latency, seen_at_commit, seen_in_sink
from spark_jobs.tables.streaming.batches import MS, Batch

START_MS = 1_795_173_800_000
WINDOW = (START_MS * MS, (START_MS + 10_000) * MS)
SCHEMA = "topic string, partition int, offset long, due_ms long"


def batch(number: int, committed_s: float, **ends: tuple[int, int]) -> Batch:
    ended_ns = (START_MS + round(committed_s * 1000)) * MS
    offsets = {("input", name.removeprefix("p")): span for name, span in ends.items()}
    return Batch(number, ended_ns - 10**9, ended_ns, 0, 0, 0.0, 0.0, 0.0, 0, 0, offsets, None, None)


def due(spark: SparkSession, *records: tuple[int, int, float]) -> DataFrame:
    rows = [("input", partition, offset, START_MS + round(due_s * 1000)) for partition, offset, due_s in records]
    return spark.createDataFrame(rows, SCHEMA)


def found(records: DataFrame, batches: list[Batch]) -> list[tuple[float, ...]]:
    return [tuple(row) for row in latency(seen_at_commit(records, [each.commit for each in batches]), WINDOW).collect()]


def test_a_record_is_as_late_as_the_commit_of_the_batch_that_held_it(spark: SparkSession) -> None:
    batches = [batch(0, 2.5, p0=(0, 2), p1=(0, 1)), batch(1, 6.25, p0=(2, 3), p1=(1, 1))]
    records = due(spark, (0, 0, 1.5), (0, 1, 0.5), (1, 0, -1.5), (0, 2, 2.25))
    assert found(records, batches) == [
        (2, 3, 2.0, pytest.approx(3.96), pytest.approx(3.996)),
        (6, 1, 4.0, 4.0, 4.0),
    ]


def test_batches_that_commit_in_one_second_are_seen_together(spark: SparkSession) -> None:
    batches = [batch(0, 3.1, p0=(0, 1)), batch(1, 3.9, p0=(1, 2))]
    ((second, records, median, *_),) = found(due(spark, (0, 0, 3.0), (0, 1, 3.0)), batches)
    assert (second, records, median) == (3, 2, pytest.approx(0.5))


def test_batches_may_come_in_any_order(spark: SparkSession) -> None:
    batches = [batch(1, 5.0, p0=(1, 2)), batch(0, 4.0, p0=(0, 1))]
    rows = found(due(spark, (0, 0, 3.0), (0, 1, 3.0)), batches)
    assert [(second, median) for second, _, median, *_ in rows] == [(4, 1.0), (5, 2.0)]


def test_commits_outside_the_window_are_not_seen(spark: SparkSession) -> None:
    batches = [batch(0, -0.001, p0=(0, 1)), batch(1, 0.0, p0=(1, 2)), batch(2, 10.0, p0=(2, 3))]
    rows = found(due(spark, (0, 0, -3.0), (0, 1, -3.0), (0, 2, -3.0)), batches)
    assert [(second, records, median) for second, records, median, *_ in rows] == [(0, 1, 3.0)]


def test_in_real_time_mode_a_record_is_seen_when_the_last_of_its_words_first_came_to_the_sink(
    spark: SparkSession,
) -> None:
    copies = [(0.5, "0:7:an", 0.75), (0.5, "0:7:the", 1.0), (0.5, "0:7:the", 8.5), (0.5, "1:7:an", 2.25)]
    rows = [(START_MS + round(due_s * 1e3), key, START_MS + round(seen_s * 1e3)) for due_s, key, seen_s in copies]
    sink = spark.createDataFrame(rows, "start_ms long, key string, arrived_ms long")
    seen = latency(seen_in_sink(sink), WINDOW).collect()
    assert [tuple(row) for row in seen] == [(1, 1, 0.5, 0.5, 0.5), (2, 1, 1.75, 1.75, 1.75)]


def test_a_record_that_meets_several_in_a_join_is_seen_once_with_its_last_result(spark: SparkSession) -> None:
    pairs = [("0:7,0:9", 1.0), ("0:7,1:9", 1.5), ("0:8,1:9", 1.25)]
    rows = [(START_MS + 500, key, START_MS + round(seen_s * 1e3)) for key, seen_s in pairs]
    seen = seen_in_sink(spark.createDataFrame(rows, "start_ms long, key string, arrived_ms long")).collect()
    assert sorted(row["seen_ms"] - START_MS for row in seen) == [1250, 1500]


def test_results_of_a_query_are_seen_slide_by_slide_and_those_of_the_runs_end_are_not(spark: SparkSession) -> None:
    words = [("q0 one", 0, 300), ("q0 two", 0, 500), ("q10 one", 0, 700), ("q0 one", 1000, 100), ("q0 one", 2000, -1)]
    rows = [(key, START_MS + end_ms, START_MS + end_ms + late_ms) for key, end_ms, late_ms in words]
    found = slides(spark.createDataFrame(rows, "key string, end_ms long, arrived_ms long"))
    told = [(query, end_ns // MS - START_MS, (arrived_ns - end_ns) // MS) for query, end_ns, arrived_ns in found]
    assert told == [("q0", 0, 400), ("q0", 1000, 100), ("q10", 0, 700)]
