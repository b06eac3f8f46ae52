"""Quality of hand-made output: lost, duplicated, wrong and spurious records."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from experiments.workloads.catalogue import NexmarkSpec, WordCountSpec
from spark_jobs.tables.quality import closed, committed_until_ms, quality

SCHEMA = "start_ms long, end_ms long, key string, value string"
MS = 10**6
CLOSED_MS = 20_000


@pytest.fixture(scope="module")
def frame(spark: SparkSession):
    def make(*records: tuple[int, str, int]) -> DataFrame:
        rows = [(start_ms, start_ms + 10_000, key, str(count)) for start_ms, key, count in records]
        return spark.createDataFrame(rows, SCHEMA)

    return make


def judged(sink: DataFrame, oracle: DataFrame) -> dict[int, tuple[int, ...]]:
    """By start of window [ms]: exact, emitted, lost, duplicated, wrong."""
    found = quality(sink, oracle, closed(WordCountSpec(), CLOSED_MS, {})).collect()
    assert all(row["window_end_ns"] - row["window_start_ns"] == 10_000 * MS for row in found)
    names = ("exact", "emitted", "lost", "duplicated", "wrong")
    return {row["window_start_ns"] // MS: tuple(row[name] for name in names) for row in found}


def test_without_a_watermark_the_partition_that_is_read_least_far_counts(spark: SparkSession) -> None:
    records = [("input", 0, 10), ("input", 0, 40), ("input", 1, 20), ("rates", 0, 30)]
    committed = spark.createDataFrame(records, "topic string, partition int, due_ms long")
    read = {"input": {"0": 2, "1": 1}, "rates": {"0": 1}}
    assert committed_until_ms(committed, read) == 20
    assert committed_until_ms(committed, read | {"rates": {"0": 1, "1": 0}}) == 0, "nothing is known of that one"


def test_output_that_is_exact(frame) -> None:
    exact = frame((0, "an", 3), (0, "the", 2), (5000, "an", 4))
    assert judged(exact, exact) == {0: (2, 2, 0, 0, 0), 5000: (1, 1, 0, 0, 0)}


def test_every_kind_of_fault_is_counted_in_its_window(frame) -> None:
    oracle = frame((0, "lost", 1), (0, "twice", 2), (0, "wrong", 3), (0, "right", 4), (5000, "right", 5))
    sink = frame(
        (0, "twice", 2), (0, "twice", 2), (0, "twice", 2), (0, "wrong", 9), (0, "right", 4), (0, "spurious", 1),
        (5000, "right", 5),
    )  # fmt: skip
    assert judged(sink, oracle) == {0: (4, 6, 1, 2, 2), 5000: (1, 1, 0, 0, 0)}


def test_copies_that_disagree_are_duplicated_and_wrong(frame) -> None:
    oracle = frame((0, "low", 3), (0, "high", 3))
    sink = frame((0, "low", 3), (0, "low", 2), (0, "high", 4), (0, "high", 3))
    assert judged(sink, oracle) == {0: (2, 4, 0, 2, 2)}


@pytest.fixture(scope="module")
def as_it_is(spark: SparkSession):
    def make(*records: tuple[int | None, int | None, str | None, str | None]) -> DataFrame:
        return spark.createDataFrame(list(records), SCHEMA)

    return make


RIGHT = (0, 10_000, "an", "3")


def test_a_result_without_its_value_is_wrong_even_beside_a_right_copy(frame, as_it_is) -> None:
    without = (*RIGHT[:3], None)
    assert judged(as_it_is(without), frame((0, "an", 3))) == {0: (1, 1, 0, 0, 1)}
    assert judged(as_it_is(RIGHT, without), frame((0, "an", 3))) == {0: (1, 2, 0, 1, 1)}


@pytest.mark.parametrize(
    "garbage", [(None, None, None, None), (0, 10_000, None, "3"), (0, None, "an", "3"), (0, 90_000, None, "3")]
)
@pytest.mark.parametrize("by_second", [False, True])
def test_what_is_no_result_is_wrong_beside_the_right_ones(frame, as_it_is, garbage, by_second) -> None:
    final = closed(WordCountSpec(), CLOSED_MS, {})
    found = quality(as_it_is(RIGHT, garbage), frame((0, "an", 3)), final, by_second=by_second).collect()
    assert [sum(row[name] for row in found) for name in ("exact", "emitted", "lost", "wrong")] == [1, 2, 0, 1]
    assert all(value is not None for row in found for value in row)


@pytest.mark.parametrize("garbage", [(None,) * 4, (0, 0, "an", "3"), (0, 0, "0:an", "3")])
def test_of_single_records_too_what_is_no_result_is_wrong(as_it_is, garbage) -> None:
    right, final = (0, 0, "0:9:an", "3"), closed(WordCountSpec(depth=0), CLOSED_MS, {"input": {"0": 10}})
    (row,) = quality(as_it_is(right, garbage), as_it_is(right), final, by_second=True).collect()
    assert (row["exact"], row["emitted"], row["lost"], row["wrong"]) == (1, 2, 0, 1)


def test_a_record_that_should_be_there_several_times(frame) -> None:
    oracle = frame(*[(0, "path", 1)] * 3, (0, "other", 1), (0, "other", 1))
    assert judged(oracle, oracle) == {0: (5, 5, 0, 0, 0)}
    assert judged(frame((0, "path", 1), (0, "path", 1)), oracle) == {0: (5, 2, 3, 0, 0)}
    assert judged(frame(*[(0, "path", 1)] * 5, (0, "other", 1), (0, "other", 2)), oracle) == {0: (5, 7, 0, 2, 1)}


def test_a_window_that_nobody_expected_is_wrong_and_one_that_never_came_is_lost(frame) -> None:
    found = judged(frame((0, "an", 1), (0, "the", 1)), frame((5000, "an", 1)))
    assert found == {0: (0, 2, 0, 0, 2), 5000: (1, 0, 1, 0, 0)}


def test_windows_that_are_still_open_are_not_judged(frame) -> None:
    oracle = frame((10_000, "due", 1), (10_001, "open", 1))
    assert judged(frame(), oracle) == {10_000: (1, 0, 1, 0, 0)}


def test_no_output_at_all_where_none_was_due(frame) -> None:
    assert judged(frame(), frame()) == {}


@pytest.mark.parametrize(("committed", "keys"), [({"input": {"0": 10, "1": 3}}, {"0:9:an", "1:2:an"}), ({}, set())])
def test_without_state_a_record_is_final_once_its_input_is_committed(spark: SparkSession, committed, keys) -> None:
    found = spark.createDataFrame([(f"{record}:an",) for record in ("0:9", "0:10", "1:2", "1:9", "2:0")], "key string")
    final = found.withColumn("end_ms", F.lit(0)).where(closed(WordCountSpec(depth=0), CLOSED_MS, committed))
    assert {row["key"] for row in final.collect()} == keys


def test_a_result_of_a_join_is_final_once_both_its_records_are_committed(spark: SparkSession) -> None:
    found = spark.createDataFrame(
        [(key,) for key in ("0:9,1:2", "0:9,1:3", "0:10,1:2", "1:2,0:0", "0:1,2:0")], "key string"
    )
    final = found.withColumn("end_ms", F.lit(0)).where(
        closed(NexmarkSpec(query="q3"), CLOSED_MS, {"input": {"0": 10, "1": 3}})
    )
    assert {row["key"] for row in final.collect()} == {"0:9,1:2", "1:2,0:0"}


def test_a_query_that_needs_to_settle_is_judged_that_much_later(spark: SparkSession) -> None:
    ends = spark.createDataFrame([(end_ms, "a") for end_ms in (15_999, 16_000, 16_001)], "end_ms long, key string")
    final = ends.where(closed(NexmarkSpec(query="q9", window_s=4), CLOSED_MS, {}))
    assert {row["end_ms"] for row in final.collect()} == {15_999, 16_000}
