"""The sources of a slot read a partition of the input together, each its own kind, and each at its own pace."""

from dataclasses import replace

import pytest

from experiments.errors import BadInput, EnvironmentFailure
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from testbed.runtime.connectors import shared_input
from testbed.runtime.connectors.shared_input import MOST_KEPT, PATIENCE_S
from testbed.runtime.job import InputKind
from testbed.runtime.slot.inputs import feeds
from tests.unit.testbed.runtime.topic_messages import Topic
from tests.unit.testbed.small_job import JOB, partition_named
from workloads.schedule import NS_PER_MS

FROM_TOPIC = replace(JOB, input=replace(JOB.input, kind=InputKind.KAFKA))
Q8 = replace(FROM_TOPIC, workload=NexmarkSpec(query=NexmarkQuery.Q8))
EVENTS = (JOB.input.events - 1 + JOB.parallelism - 1) // JOB.parallelism  # in partition 1


@pytest.fixture(autouse=True)
def _topic(monkeypatch):
    monkeypatch.setattr(shared_input, "TopicReader", Topic)
    monkeypatch.setattr(Topic, "opened", 0)
    monkeypatch.setattr(Topic, "closed", 0)
    monkeypatch.setattr(Topic, "taken", 0)


class Stopped:
    now_s = 0.0

    def monotonic(self):
        return self.now_s


@pytest.fixture
def stopped(monkeypatch):
    """A clock that stands still until it is told the time."""
    monkeypatch.setattr(shared_input, "time", found := Stopped())
    return found


def offsets(read, column="auction"):
    return [] if read is None or read.batch is None else read.batch.column(column).to_pylist()


def test_a_topic_is_read_again_to_the_same_ends_in_one_go():
    feed = feeds(FROM_TOPIC)(partition_named(FROM_TOPIC, "bids.0"))
    found, position = {}, 0
    for start, stop in ((2, 9), (9, 10), (17, 30)):
        position, found[start] = max(position, start), []
        while position < stop:
            read = feed.read(position, stop)
            found[start] += offsets(read)
            position = read.position if read else position
        assert position == stop
        assert found[start] == [at for at in range(start, stop) if at % 2]
    assert Topic.opened == 1
    assert offsets(feed.read(2, 4)) == [3], "a source that goes back starts again"
    assert (Topic.opened, Topic.closed) == (2, 1)


def test_sources_of_two_kinds_read_a_partition_once_and_miss_nothing(stopped):
    feed_of = feeds(Q8)
    both = auctions, persons = feed_of(partition_named(Q8, "auctions.1")), feed_of(partition_named(Q8, "persons.1"))
    at, found = {auctions: 0, persons: 0}, []
    while set(at.values()) != {EVENTS}:
        for feed, steps in zip(both, (5, 1), strict=True):  # one is faster than the other by far
            for _ in range(steps):
                if (read := feed.read(at[feed])) is None:
                    continue
                first_ms, last_ms, at[feed] = 1000 + at[feed], 1000 + read.position - 1, read.position
                found += offsets(read, "id") if feed is auctions else []
                assert feed is auctions or read.batch is None, "there are no persons here"
                times_ns = first_ms * NS_PER_MS, last_ms * NS_PER_MS
                assert read.times_ns == times_ns or (read.batch is None and read.ended), "for both kinds"
    assert found == [at for at in range(EVENTS) if at % 2 == 0]
    assert (Topic.opened, Topic.taken) == (1, EVENTS), "each message was read once"


def test_what_place_and_time_tell_is_the_messages():
    read = feeds(Q8)(partition_named(Q8, "auctions.1")).read(3)
    assert read.batch.column("position").to_pylist() == [4 * 3 + 1]
    assert read.batch.column("at_ns").to_pylist() == [1004 * 10**6]


def run(feed, position, reads):
    """Where a source is after each read; the first read without records is the last one."""
    for _ in range(reads):
        read = feed.read(position)
        if read is None:
            break
        position = read.position
    return position


def test_who_is_ahead_waits_for_a_while_and_then_goes_on(stopped):
    feed_of = feeds(Q8)
    first, last = feed_of(partition_named(Q8, "auctions.1")), feed_of(partition_named(Q8, "persons.1"))
    assert run(last, 0, 1) == 3
    limit = 3 * MOST_KEPT
    assert run(first, 0, 100) == limit, "as much is kept as may be"
    assert run(last, 3, 1) == 6
    assert run(first, limit, 100) == limit + 3
    stopped.now_s += PATIENCE_S
    assert run(first, limit + 3, 10) == limit + 33, "who holds it up may wait for it"
    assert Topic.opened == 1
    assert run(last, 6, 2) == 12
    assert Topic.opened == 2, "what was dropped is read again"


def test_a_long_time_without_input_is_no_wait_for_the_slowest(stopped):
    feed_of = feeds(Q8)
    first, last = feed_of(partition_named(Q8, "auctions.1")), feed_of(partition_named(Q8, "persons.1"))
    assert run(last, 0, 1) == run(first, 0, 1) == 3
    stopped.now_s += 100 * PATIENCE_S
    assert run(first, 3, 100) == 3 * MOST_KEPT
    assert Topic.opened == 1


def test_who_went_apart_meet_again(stopped):
    feed_of = feeds(Q8)
    first, last = feed_of(partition_named(Q8, "auctions.1")), feed_of(partition_named(Q8, "persons.1"))
    ahead = run(first, 90, 4)
    behind = run(last, 60, 1)
    assert (Topic.opened, Topic.closed) == (2, 0)
    ahead = run(first, ahead, 1)
    assert (Topic.opened, Topic.closed) == (2, 1)
    for _ in range(40):
        behind, ahead = run(last, behind, 1), run(first, ahead, 1)
    assert behind == 63 + 3 * 40
    assert ahead > behind
    assert Topic.opened == 2


def test_a_failure_is_told_to_whoever_asks(monkeypatch):
    def fail(self):
        raise EnvironmentFailure("the topic", "look")

    monkeypatch.setattr(Topic, "take", fail)
    feed_of = feeds(Q8)
    for name in ("auctions.1", "persons.1"):
        with pytest.raises(EnvironmentFailure, match="the topic; look"):
            feed_of(partition_named(Q8, name)).read(0)


def test_the_last_to_leave_closes_the_reader():
    feed_of = feeds(Q8)
    both = feed_of(partition_named(Q8, "auctions.1")), feed_of(partition_named(Q8, "persons.1"))
    for each in both:
        each.read(0)
    both[0].close()
    assert Topic.closed == 0
    both[1].close()
    assert Topic.closed == 1


def test_partitions_are_read_each_by_its_own_reader():
    feed_of = feeds(Q8)
    for index in range(3):
        feed_of(partition_named(Q8, f"auctions.{index}")).read(0)
    assert Topic.opened == 3


def test_a_job_without_a_broker_is_refused_where_a_topic_is_read(monkeypatch):
    monkeypatch.undo()
    with pytest.raises(BadInput, match="a broker, where events or results are those of a topic"):
        feeds(FROM_TOPIC)(partition_named(FROM_TOPIC, "bids.0")).read(0)
