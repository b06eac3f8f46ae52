"""The archive of a run with Arrow batches: the same records and results as of messages of JSON, up to its end."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from experiments import spec
from experiments.errors import EnvironmentFailure
from infra.cluster import Handle
from infra.services.kafka import create_topics
from journal.events.testbed import Finished
from journal.writer import Journal
from spark_jobs.tables.archive import archive
from testbed.queries import as_messages
from tests.result_messages import fields
from workloads.inputs import records
from workloads.queries import oracle
from workloads.schedule import Schedule
from workloads.sending.batch_sender import BatchSender
from workloads.topics import INPUT, OUTPUT

pytestmark = pytest.mark.extended  # broker and Spark take half a minute to start
PARTITIONS, RECORDS, MESSAGES = 2, 50, 20  # records of a message, messages of a partition
EVENTS = PARTITIONS * RECORDS * MESSAGES
ARRIVED_MS = 1_795_173_800_123
SCHEDULE = Schedule(1_795_173_799_675_000_000, 500.0, PARTITIONS)
ENDS = {0: 930, 1: RECORDS * MESSAGES}  # amid a message, and after the last


@pytest.fixture(scope="module")
def sent(broker: Handle) -> Handle:
    create_topics(broker.kafka, {INPUT: PARTITIONS, OUTPUT: PARTITIONS})
    feed = BatchSender(broker.kafka, INPUT, experiment_of("q1").workload, SCHEDULE, RECORDS)
    feed.send_until(EVENTS)
    feed.finish()
    assert (feed.delivered, feed.failed) == (EVENTS, 0)
    return broker


def experiment_of(query: str) -> spec.Experiment:
    document = ["workload.window_s=1", "workload.slide_s=1", f"load.batch_records={RECORDS}"]
    return spec.load("dataflow-q12", [f"workload.query={query}", *document])


def archived(spark: SparkSession, broker: Handle, query: str, ends: dict[int, int], raw: Path) -> None:
    experiment = experiment_of(query)
    Journal(raw / "query.jsonl").record(Finished({f"bids.{partition}": end for partition, end in ends.items()}))
    archive(spark, raw, broker.kafka, experiment.workload, experiment.engine, experiment.load)


def as_json(spark: SparkSession) -> DataFrame:
    """What the input would be with a record a message, up to the same ends."""
    values = records(experiment_of("q1").workload, SCHEDULE)(0, EVENTS)
    rows = [
        (p % PARTITIONS, p // PARTITIONS, datetime.fromtimestamp(SCHEDULE.due_ms(p) / 1000, UTC), bytearray(value))
        for p, value in enumerate(values)
        if p // PARTITIONS < ENDS[p % PARTITIONS]
    ]
    return spark.createDataFrame(rows, "partition int, offset long, timestamp timestamp, value binary")


def result_counts() -> pa.RecordBatch:
    """As the sink of Q12 has them: more than go into one message."""
    rows = 2 * RECORDS + 10
    counts = {"bidder": range(rows), "bids": range(1, rows + 1)}
    return pa.RecordBatch.from_pydict({"window_start_ns": [7 * 10**9] * rows, **counts})


def put(broker: Handle, values: list[bytes]) -> int:
    """Put messages into partition 0 of the output; returns the offset of the last."""
    offsets = list[int]()
    producer = Producer(
        {**broker.kafka.for_librdkafka(), "on_delivery": lambda _, message: offsets.append(message.offset())}
    )
    for value in values:
        producer.produce(OUTPUT, value, partition=0, timestamp=ARRIVED_MS)
    producer.flush()
    return max(offsets)


@pytest.mark.parametrize("query", ["q8", "q12"])
def test_records_due_times_and_oracle_are_those_of_messages_of_json(
    spark: SparkSession, sent: Handle, tmp_path: Path, query: str
) -> None:
    archived(spark, sent, query, ENDS, tmp_path)
    found = [tuple(row) for row in spark.read.parquet(str(tmp_path / "input.parquet")).collect()]
    wanted = {
        (INPUT, partition, offset, SCHEDULE.due_ms(offset * PARTITIONS + partition))
        for partition, end in ENDS.items()
        for offset in range(end)
    }
    assert len(found) == len(wanted)
    assert set(found) == wanted
    exact = sorted(map(tuple, spark.read.parquet(str(tmp_path / "oracle.parquet")).collect()))
    assert exact == sorted(map(tuple, oracle(as_json(spark), experiment_of(query).workload).collect()))
    assert len(exact) > 10


def test_a_message_that_is_no_batch_is_named(spark: SparkSession, sent: Handle, tmp_path: Path) -> None:
    producer = Producer(sent.kafka.for_librdkafka())
    producer.produce(INPUT, b'{"kind":"bid","auction":1}', partition=1)
    producer.flush()
    with pytest.raises(PythonException, match=f"the topic input, partition 1, offset {MESSAGES}: no Arrow batch: "):
        archived(spark, sent, "q12", ENDS | {1: RECORDS * MESSAGES + 1}, tmp_path)


def test_results_in_batches_are_those_of_messages_of_json(spark: SparkSession, sent: Handle, tmp_path: Path) -> None:
    workload, counts = experiment_of("q12").workload, result_counts()
    put(sent, [value for _, value in as_messages(workload, counts, PARTITIONS, RECORDS)])
    archived(spark, sent, "q12", ENDS, tmp_path)
    found = spark.read.parquet(str(tmp_path / "sink.parquet")).collect()
    wanted = [fields(value) for _, value in as_messages(workload, counts, PARTITIONS)]
    assert sorted((row.start_ms, row.end_ms, row.key, row.value) for row in found) == sorted(wanted)
    assert len(wanted) > RECORDS
    assert {row.arrived_ms for row in found} == {ARRIVED_MS}


def test_results_that_are_no_batch_are_named(spark: SparkSession, sent: Handle, tmp_path: Path) -> None:
    """The topic keeps the message, which no later test may read."""
    number = put(sent, [b'{"start_ms":0}'])
    with pytest.raises(PythonException, match=f"the topic output, partition 0, offset {number}: no Arrow batch: "):
        archived(spark, sent, "q12", ENDS, tmp_path)


def test_messages_that_are_gone_are_named(spark: SparkSession, sent: Handle, tmp_path: Path) -> None:
    """The last test of this file: the topic does not get them back."""
    admin = AdminClient(sent.kafka.for_librdkafka())
    for done in admin.delete_records([TopicPartition(INPUT, 1, 2)]).values():
        done.result()
    lack = f"no message has this offset; {2 * RECORDS} of {ENDS[1]} records are missing"
    with pytest.raises(EnvironmentFailure, match=f"^the topic input, partition 1, offset 0: {lack}"):
        archived(spark, sent, "q12", ENDS, tmp_path)
