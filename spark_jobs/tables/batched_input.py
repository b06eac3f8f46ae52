"""The input of a run with Arrow batches, record by record, as if each record were a JSON message."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from workloads.nexmark.batches import as_json, read

Ends = dict[str, dict[str, int]]
COLUMNS = "topic STRING, partition INT, offset LONG, due_ms LONG, value BINARY"


def in_messages(ends: Ends, batch_records: int) -> Ends:
    """The end offsets of topics' partitions in messages, from those in records; the last message may have more."""
    return {
        topic: {partition: -(-end // batch_records) for partition, end in of_topic.items()}
        for topic, of_topic in ends.items()
    }


def in_records(messages: DataFrame, ends: Ends, batch_records: int) -> DataFrame:
    """The records before these ends, as (topic, partition, offset, timestamp, value), from the topics' messages.

    The job that takes them fails with topic, partition and offset of a message that is no such batch.
    """
    taken = messages.select("topic", "partition", "offset", "value").mapInArrow(_unpacked(ends, batch_records), COLUMNS)
    return taken.withColumn("timestamp", F.timestamp_millis("due_ms")).drop("due_ms")


def _unpacked(ends: Ends, batch_records: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for message in batch.to_pylist():
                yield _records(message["topic"], message["partition"], message["offset"], message["value"] or b"")

    def _records(topic: str, partition: int, number: int, value: bytes) -> pa.RecordBatch:
        found = read(value, number * batch_records, (number + 1) * batch_records)
        if isinstance(found, str):
            raise ValueError(f"the topic {topic}, partition {partition}, offset {number}: {found}")
        offsets, due_ms, values = as_json(found)
        rows = pa.RecordBatch.from_pydict(
            {
                "topic": pa.array([topic] * len(offsets)),
                "partition": pa.array([partition] * len(offsets), pa.int32()),
                "offset": pa.array(offsets),
                "due_ms": pa.array(due_ms),
                "value": pa.array(values, pa.binary()),
            }
        )
        return rows.slice(0, max(0, ends[topic][str(partition)] - number * batch_records))

    return unpacked
