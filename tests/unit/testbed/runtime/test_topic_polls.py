"""Input is decoded by column, and input that can't be decoded is named with its place."""

from dataclasses import replace

import pyarrow as pa
import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

from experiments.errors import EnvironmentFailure
from experiments.workloads.catalogue import NexmarkSpec
from testbed.queries.nexmark import events_schema
from testbed.runtime.connectors.sources import columns, stream_of
from testbed.runtime.connectors.topic_polls import JsonPoll
from tests.unit.testbed.runtime.topic_messages import KINDS, PLACE, Message, event
from workloads.inputs import records
from workloads.nexmark.stream import events
from workloads.schedule import Schedule

BIDS = events_schema("auction", "bidder", "price", "extra")
START, COUNT, BAD = 40, 20, 47  # a bid
GOOD = b'{"kind":"bid","auction":1,"bidder":1,"price":7,"extra":"x"}'


def test_events_of_a_topic_are_those_that_were_made():
    schedule, spec, kinds = Schedule(5_000_000, 10_000.0), NexmarkSpec(), {}
    values = records(spec, schedule)(0, 1000)
    place = replace(PLACE, partition=0, partitions=1)
    poll = JsonPoll(place, 0, [Message(at, value, schedule.due_ms(at)) for at, value in enumerate(values)])
    made = events(stream_of(spec, schedule), 0, 1000)
    for kind, fields in (("bids", BIDS), ("persons", events_schema("id", "name", "city", "state"))):
        kinds[kind] = poll.events(kind, fields, 0, 1000)
        assert kinds[kind].equals(columns(getattr(made, kind), fields))
    parts = [poll.events("bids", BIDS, at, at + 100) for at in range(0, 1000, 100)]
    assert pa.Table.from_batches(parts) == pa.Table.from_batches([kinds["bids"]]), "in parts of any size"
    assert poll.events("persons", events_schema("id"), 1, 50) is None


def poll_with(content, due_ms=5):
    messages = [event(at) for at in range(START, START + COUNT)]
    messages[BAD - START] = Message(BAD, content, due_ms)
    return JsonPoll(PLACE, START, messages)


NO_EVENTS = {
    "text": b"hello",
    "nothing": b"",
    "gone": None,
    "other-kind": b'{"kind":"tweet","auction":1}',
    "kind-last": b'{"auction":1,"kind":"bid"}',
    "bytes": bytes(range(256)),
}
NO_BIDS = {
    "cut-off": GOOD[:-1],
    "lacks-price": GOOD.replace(b'"price":7,', b""),
    "null": GOOD.replace(b"7", b"null"),
    "text-for-number": GOOD.replace(b"7", b'"7"'),
    "number-for-text": GOOD.replace(b'"x"', b"5"),
    "fraction": GOOD.replace(b"7", b"7.5"),
    "too-large": GOOD.replace(b"7", b"9" * 30),
    "two": GOOD + b"\n" + GOOD,
    "two-in-a-line": GOOD + GOOD,
    "more": GOOD + b"x",
    "no-utf-8": GOOD.replace(b"x", b"\xff"),
}


def test_a_message_with_the_broker_s_time_is_named():
    """Latency would be counted from when the broker took it, which leaves out what an outage cost."""
    messages = [event(at) for at in range(START, START + COUNT)]
    messages[7] = replace(messages[7], kind=TIMESTAMP_LOG_APPEND_TIME)
    with pytest.raises(EnvironmentFailure, match=r"offset 47: .* message.timestamp.type has to be CreateTime"):
        JsonPoll(PLACE, START, messages)


@pytest.mark.parametrize("content", NO_EVENTS.values(), ids=NO_EVENTS)
def test_a_message_that_is_no_event_is_named(content):
    with pytest.raises(EnvironmentFailure, match="topic input, partition 1, offset 47: no event of this") as told:
        poll_with(content)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("content", NO_BIDS.values(), ids=NO_BIDS)
def test_a_message_that_is_no_such_event_is_named(content):
    poll = poll_with(content)
    with pytest.raises(EnvironmentFailure, match="topic input, partition 1, offset 47: ") as told:
        poll.events("bids", BIDS, START, START + COUNT)
    assert "\n" not in str(told.value)
    assert poll.events("persons", events_schema("id"), START, START + COUNT) is None


def test_two_faults_that_make_up_for_each_other_are_found():
    """One message has two events, another and the one after it have one together."""
    messages = [event(at) for at in range(START, START + COUNT)]
    messages[1] = Message(START + 1, GOOD + b"\n" + GOOD, 5)
    messages[3] = Message(START + 3, GOOD[:-1] + b',"more":', 5)
    messages[5] = Message(START + 5, GOOD + b"}", 5)
    with pytest.raises(EnvironmentFailure, match="offset 41"):
        JsonPoll(PLACE, START, messages).events("bids", BIDS, START, START + COUNT)


def test_a_message_without_a_time_is_named():
    with pytest.raises(EnvironmentFailure, match="partition 1, offset 47: a message without a time"):
        poll_with(GOOD, due_ms=-1)


@pytest.mark.parametrize("there", [[0, 1, 3], [0, 2, 1], [1, 2], [0, 0, 1]])
def test_a_gap_is_named_and_nothing_is_skipped(there):
    missing = START + next(number for number, at in enumerate(there) if at != number)
    with pytest.raises(EnvironmentFailure, match=f"topic input, partition 1, offset {missing}: no message has this"):
        JsonPoll(PLACE, START, [event(START + at) for at in there])


def test_all_kinds_of_a_workload_are_known_whatever_the_query_reads():
    from testbed.queries import event_kinds

    assert event_kinds(NexmarkSpec(), 2) == KINDS
