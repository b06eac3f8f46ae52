"""The messages of a run with Arrow batches, record by record, as if each record were a JSON message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from experiments.workloads.catalogue import NexmarkSpec
from testbed.queries import as_messages, from_batch
from workloads.nexmark.batches import UNREADABLE, as_json, read
from workloads.topics import message_place

Ends = dict[str, dict[str, int]]
Message: TypeAlias = dict[str, Any]
"""The columns of a Kafka message by their names."""
Unpack: TypeAlias = Callable[[Message], pa.RecordBatch | str]
"""The records of a message, or why it has none."""
INPUT_COLUMNS = "topic STRING, partition INT, offset LONG, due_ms LONG, value BINARY"
RESULT_COLUMNS = "arrived_ms LONG, value BINARY"


def in_messages(ends: Ends, batch_records: int) -> Ends:
    """The end offsets of topics' partitions in messages, from those in records; the last message may have more."""
    return {
        topic: {partition: -(-end // batch_records) for partition, end in of_topic.items()}
        for topic, of_topic in ends.items()
    }


def input_records(messages: DataFrame, ends: Ends, batch_records: int) -> DataFrame:
    """The records before these ends, as (topic, partition, offset, timestamp, value), from the topics' messages.

    The job that takes them fails with topic, partition and offset of a message that is no such batch.
    """
    taken = messages.select("topic", "partition", "offset", "value")
    unpacked = taken.mapInArrow(message_by_message(partial(events_in, ends, batch_records)), INPUT_COLUMNS)
    return unpacked.withColumn("timestamp", F.timestamp_millis("due_ms")).drop("due_ms")


def result_records(messages: DataFrame, workload: NexmarkSpec, partitions: int) -> DataFrame:
    """The results in these messages, as (timestamp, value): the time is that of the message.

    `partitions`: of the input. The job that takes them fails as that of `input_records` does.
    """
    arrived = F.unix_millis("timestamp").alias("arrived_ms")
    taken = messages.select("topic", "partition", "offset", arrived, "value")
    unpacked = taken.mapInArrow(message_by_message(partial(results_in, workload, partitions)), RESULT_COLUMNS)
    return unpacked.select(F.timestamp_millis("arrived_ms").alias("timestamp"), "value")


def events_in(ends: Ends, batch_records: int, message: Message) -> pa.RecordBatch | str:
    """The events of a message of the input that are before these ends, in `INPUT_COLUMNS`; or why it has none."""
    start = message["offset"] * batch_records
    found = read(message["value"] or b"", start, start + batch_records)
    if isinstance(found, str):
        return found
    offsets, due_ms, values = as_json(found)
    rows = pa.RecordBatch.from_pydict(
        {
            "topic": pa.array([message["topic"]] * len(offsets)),
            "partition": pa.array([message["partition"]] * len(offsets), pa.int32()),
            "offset": pa.array(offsets),
            "due_ms": pa.array(due_ms),
            "value": pa.array(values, pa.binary()),
        }
    )
    return rows.slice(0, max(0, ends[message["topic"]][str(message["partition"])] - start))


def results_in(workload: NexmarkSpec, partitions: int, message: Message) -> pa.RecordBatch | str:
    """The results in a message of the output, in `RESULT_COLUMNS`; or why it has none."""
    try:
        found = from_batch(message["value"] or b"")
    except UNREADABLE as error:
        return f"no Arrow batch: {error}"
    values = [value for _, value in as_messages(workload, found, partitions)]
    arrived_ms = pa.array([message["arrived_ms"]] * len(values), pa.int64())
    return pa.RecordBatch.from_pydict({"arrived_ms": arrived_ms, "value": pa.array(values).cast(pa.binary())})


def message_by_message(unpack: Unpack) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What unpacks Kafka messages for `mapInArrow`. Raises `ValueError` with the place of one that has no records."""

    def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for message in batch.to_pylist():
                yield _records(unpack, message)

    return unpacked


def _records(unpack: Unpack, message: Message) -> pa.RecordBatch:
    try:
        found = unpack(message)
    except Exception as error:  # whatever is wrong with a message, its place has to be told
        raise _unusable(message, f"can't be read: {type(error).__name__}: {error}") from error
    if isinstance(found, str):
        raise _unusable(message, found)
    return found


def _unusable(message: Message, why: str) -> ValueError:
    place = message_place(message["topic"], message["partition"], message["offset"])
    return ValueError(f"{place}: {' '.join(why.split())}")
