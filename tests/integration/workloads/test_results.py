"""Results on their way through Kafka messages."""

import json

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from testbed.queries import result_columns
from workloads import results

ROWS = [
    (1, 2, "0:7", '{"euros":12.30,"extra":"a \\"quoted\\" word"}'),
    (3, 4, 'a","value":9}', '{"bids":7}'),
    (5, 6, "\u00e9\\", "-1"),
    (7, 8, "a line's end that is none in JSON", '{"extra":"a\u2028b"}'),
]


@pytest.fixture(scope="module")
def written(spark: SparkSession) -> list[tuple[str, str]]:
    made = results.messages(spark.createDataFrame(ROWS, "start_ms LONG, end_ms LONG, key STRING, value STRING"))
    return [(row.key, row.value) for row in made.collect()]


def read(spark: SparkSession, values: list[str], schema: str = results.SCHEMA) -> list[tuple]:
    sent = spark.createDataFrame([(value.encode(),) for value in values], "value BINARY")
    return [tuple(row) for row in results.read(sent, schema=schema).collect()]


def test_a_result_is_read_as_it_was_written(spark: SparkSession, written: list[tuple[str, str]]) -> None:
    assert read(spark, [value for _, value in written]) == ROWS


def test_a_message_is_one_json_object(written: list[tuple[str, str]]) -> None:
    for (start, end, key, value), (name, message) in zip(ROWS, written, strict=True):
        wanted = {"start_ms": start, "end_ms": end, "key": key, "value": json.loads(value)}
        assert (name, json.loads(message)) == (f"{start}|{key}", wanted)


def test_the_testbed_writes_the_same(spark: SparkSession, written: list[tuple[str, str]]) -> None:
    """But for letters outside ASCII, which it escapes."""
    keys, values = result_columns.messages(result_columns.of_rows(ROWS))
    assert list(zip(keys, values, strict=True))[:2] == written[:2]
    assert read(spark, values) == ROWS


def test_tentative_results_have_their_batch(spark: SparkSession) -> None:
    batches = [8, 9, 10, 11]
    _, values = result_columns.messages(result_columns.of_rows(ROWS), pa.array(batches))
    found = read(spark, values, f"{results.SCHEMA}, batch LONG")
    assert found == [(*row[:3], batch, row[3]) for row, batch in zip(ROWS, batches, strict=True)]
