"""The archive of a run with messages of JSON: what can't be used or is missing ends it, in a line that a user sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from aftershock.run import batch_job
from experiments import spec
from experiments.errors import EnvironmentFailure
from experiments.waiting import wait_for
from infra import launch, tokens
from infra.cluster import Handle
from infra.services.kafka import create_topics
from journal.events.testbed import Finished
from journal.writer import Journal
from results.runs.store import Run
from spark_jobs.tables.archive import archive
from spark_jobs.tables.bad_messages import bad_message
from workloads.checked_events import NO_EVENT
from workloads.inputs import records
from workloads.schedule import Schedule
from workloads.sending.input_sender import InputSender
from workloads.topics import INPUT, OUTPUT

pytestmark = pytest.mark.extended  # broker and Spark take half a minute to start
PARTITIONS, EACH = 2, 300  # events of a partition
SCHEDULE = Schedule(1_795_173_799_675_000_000, 500.0, PARTITIONS)
EXPERIMENT = spec.load("dataflow-q12", ["workload.query=q1"])
ENDS = {0: EACH, 1: EACH}
RUBBISH = b'{"kind":"person",rubbish'
LINE = f"the topic input, partition 1, offset {EACH}: {NO_EVENT}"


@pytest.fixture
def sent(broker: Handle) -> Iterator[Handle]:
    """The events, and behind those of partition 1 a message that is none; in topics of this test's own."""
    admin = AdminClient(broker.kafka.for_librdkafka())
    assert topics_of(admin) == set(), "a test left its topics"
    create_topics(broker.kafka, {INPUT: PARTITIONS, OUTPUT: PARTITIONS})
    feed = InputSender(broker.kafka, INPUT, records(EXPERIMENT.workload, SCHEDULE), SCHEDULE)
    feed.send_until(PARTITIONS * EACH)
    feed.require(PARTITIONS * EACH)
    producer = Producer(broker.kafka.for_librdkafka())
    producer.produce(INPUT, RUBBISH, partition=1)
    assert producer.flush(30) == 0
    yield broker
    for done in admin.delete_topics([INPUT, OUTPUT]).values():
        done.result()
    shown = "the broker shows topics 30 s after their deletion"
    wait_for(lambda: not topics_of(admin), shown, "see the broker's log", interval_s=0.05, limit_s=30)


def topics_of(admin: AdminClient) -> set[str]:
    """Which topics of a run the broker shows."""
    return {INPUT, OUTPUT} & set(admin.list_topics(timeout=30).topics)


def journal(raw: Path, ends: dict[int, int]) -> None:
    Journal(raw / "query.jsonl").record(Finished({f"bids.{partition}": end for partition, end in ends.items()}))


def archived(spark: SparkSession, broker: Handle, ends: dict[int, int], raw: Path) -> None:
    journal(raw, ends)
    archive(spark, raw, broker.kafka, EXPERIMENT.workload, EXPERIMENT.engine, EXPERIMENT.load)


def test_whole_input_is_archived(spark: SparkSession, sent: Handle, tmp_path: Path) -> None:
    archived(spark, sent, ENDS, tmp_path)
    assert spark.read.parquet(str(tmp_path / "input.parquet")).count() == PARTITIONS * EACH
    assert spark.read.parquet(str(tmp_path / "oracle.parquet")).count() == PARTITIONS * EACH * 46 // 50


def test_a_message_that_is_no_event_is_named(spark: SparkSession, sent: Handle, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="the topic input") as failure:  # Spark has several that may carry it
        archived(spark, sent, ENDS | {1: EACH + 1}, tmp_path)
    assert bad_message(str(failure.value)) == LINE


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tuple[Run, Handle]]:
    """The directory of a run that has read the message, and a cluster without hosts for its batch job."""
    found = Run("run-1", tmp_path / "run-1" / "result")
    found.raw.mkdir(parents=True)
    journal(found.raw, ENDS | {1: EACH + 1})
    found.experiment_path.write_text(EXPERIMENT.model_dump_json(), encoding="utf-8")
    owner = Handle("run-1", "local", tokens.new("local"), str(tmp_path))
    owner.save()  # who has no handle is cleaned away
    yield found, owner
    launch.stop(owner.token, 0.0)


def test_the_user_is_told_the_place_bad_message(sent: Handle, run: tuple[Run, Handle]) -> None:
    """By the batch job as a run starts it, from whose log the line is taken."""
    found, owner = run
    arguments = sent.kafka.address, str(sent.kafka.credentials)
    with pytest.raises(EnvironmentFailure) as failure:
        batch_job.carry_out("archive", found, *arguments, owner=owner)
    assert str(failure.value) == f"the job archive failed (Error: {LINE}); see tables.log of the run"


def test_an_offset_without_a_message_is_named(spark: SparkSession, sent: Handle, tmp_path: Path) -> None:
    """The commit of a transaction takes an offset."""
    event = records(EXPERIMENT.workload, SCHEDULE)(10, 11)[0]
    producer = Producer(sent.kafka.for_librdkafka() | {"transactional.id": "gap"})
    producer.init_transactions()
    for _ in range(2):
        producer.begin_transaction()
        producer.produce(INPUT, event, partition=0)
        producer.commit_transaction()
    with pytest.raises(EnvironmentFailure, match=f"partition 0, offset {EACH + 1}: no message .* 1 of {EACH + 3} "):
        archived(spark, sent, ENDS | {0: EACH + 3}, tmp_path)


def test_messages_that_are_gone_are_named(spark: SparkSession, sent: Handle, tmp_path: Path) -> None:
    admin = AdminClient(sent.kafka.for_librdkafka())
    for done in admin.delete_records([TopicPartition(INPUT, 0, 5)]).values():
        done.result()
    with pytest.raises(EnvironmentFailure, match=f"the topic input, partition 0, offset 0: no message .* 5 of {EACH} "):
        archived(spark, sent, ENDS, tmp_path)
