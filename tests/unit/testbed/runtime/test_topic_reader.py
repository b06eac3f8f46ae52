"""The thread that reads a partition, at the broker that librdkafka has for tests: JSON, batches, ends and bad input."""

from dataclasses import replace

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from experiments.errors import EnvironmentFailure
from experiments.waiting import poll_until
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from infra.broker import Broker
from testbed.runtime.connectors import topic_reader
from testbed.runtime.job import InputKind, JobInput
from testbed.runtime.slot.inputs import feeds
from tests.unit.testbed.small_job import JOB, partition_named
from workloads.inputs import TopicStream, records
from workloads.schedule import Schedule
from workloads.sending import producing
from workloads.sending.feeds import feed_of

SCHEDULE, EVENTS, BATCH, LIMIT_S = Schedule(10**15, 1000.0, JOB.parallelism), 3000, 100, 120.0
Q8 = NexmarkSpec(query=NexmarkQuery.Q8)


@pytest.fixture(scope="module")
def broker():
    host = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    found = host.list_topics(timeout=LIMIT_S).brokers.values()
    yield Broker(",".join(f"{each.host}:{each.port}" for each in found))
    host.flush()


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    """An idempotent producer is more than that broker knows of several partitions."""
    plain = producing.SETTINGS | {"enable.idempotence": False, "linger.ms": 1}
    monkeypatch.setattr(producing, "SETTINGS", plain)


def filled(broker, topic, batch):
    """A job whose input topic has all its events."""
    found = JobInput(InputKind.KAFKA, EVENTS, broker=broker, topic=topic, batch_records=batch)
    job = replace(JOB, workload=Q8, input=found)
    sender = feed_of(broker, Q8, TopicStream(topic, records(Q8, SCHEDULE), SCHEDULE), batch)
    sender.send_until(EVENTS)
    sender.finish()
    assert sender.delivered == EVENTS
    return job


def read_all(feed):
    found, at = [], [0, False]

    def step():
        read = feed.read(at[0])
        if read is not None:
            at[:] = read.position, read.ended
            found.extend([] if read.batch is None else [read.batch])
        return at[1]

    assert poll_until(step, interval_s=0.01, limit_s=LIMIT_S)
    return pa.Table.from_batches(found).combine_chunks(), at[0]


def refusal(feed, at=0):
    """Read on until that is refused."""
    told, position = [], [at]

    def failed():
        try:
            read = feed.read(position[0])
        except EnvironmentFailure as failure:
            told.append(str(failure))
            return True
        position[0] = read.position if read else position[0]
        return False

    assert poll_until(failed, interval_s=0.01, limit_s=LIMIT_S)
    return told[0]


def test_both_forms_of_input_have_the_same_events_and_ends(broker):
    single, batched = filled(broker, "single", None), filled(broker, "batched", BATCH)
    feed_of, batch_feed_of = feeds(single), feeds(batched)
    for name in ("auctions.0", "persons.0", "auctions.2"):
        wanted, end = read_all(one := feed_of(partition_named(single, name)))
        found, batch_end = read_all(other := batch_feed_of(partition_named(batched, name)))
        assert found.equals(wanted)
        assert wanted.num_rows >= EVENTS // JOB.parallelism // 50
        assert end == batch_end == EVENTS // JOB.parallelism
        one.close()
        other.close()


def test_bad_input_is_told_with_its_place_by_whoever_reads(broker):
    job = filled(broker, "bad", None)
    producer = Producer({**broker.for_librdkafka(), "log_level": 0})
    producer.produce("bad", b"hello", partition=1)
    producer.flush()
    job = replace(job, input=replace(job.input, events=None))
    feed = feeds(job)(partition_named(job, "persons.1"))
    told = refusal(feed)
    assert f"the topic bad, partition 1, offset {EVENTS // JOB.parallelism}: no event of this workload" in told
    with pytest.raises(EnvironmentFailure, match="no event of this workload"):
        feed.read(EVENTS // JOB.parallelism)
    feed.close()


def test_what_nobody_thought_of_is_told_too(broker, monkeypatch):
    """It would end the thread that reads, and the source would wait for ever."""
    job = filled(broker, "odd", BATCH)

    def fails(*_):
        raise ValueError("odd")

    monkeypatch.setattr(topic_reader, "BatchPoll", fails)
    feed = feeds(job)(partition_named(job, "persons.1"))
    assert "the topic odd, partition 1, offset 0: can't be read: ValueError: odd" in refusal(feed)
    feed.close()


def test_where_the_topic_has_lost_messages_is_told_as_kafka_counts_them(broker):
    """The job's input begins in the middle of a message."""
    job = filled(broker, "short", BATCH)
    job = replace(job, input=replace(job.input, events=None))
    feed = feeds(job)(partition_named(job, "persons.1"))
    there = EVENTS // JOB.parallelism // BATCH
    assert f"no longer has what partition 1 had from offset {there + 90} on" in refusal(feed, (there + 90) * BATCH + 7)
    feed.close()
