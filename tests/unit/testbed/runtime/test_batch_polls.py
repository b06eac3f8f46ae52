"""Messages that are Arrow batches of events: the same events as messages of JSON, and what is amiss is named."""

from dataclasses import replace

import pyarrow as pa
import pytest

from experiments.errors import EnvironmentFailure
from experiments.workloads.catalogue import NexmarkSpec
from testbed.queries.nexmark import events_schema
from testbed.runtime.connectors.batch_polls import BatchPoll
from testbed.runtime.connectors.topic_polls import JsonPoll
from tests.unit.testbed.runtime.topic_messages import PLACE, Message
from workloads.inputs import records
from workloads.nexmark.batches import KIND, Batches
from workloads.schedule import Schedule

SPEC, SCHEDULE, LENGTH, FIRST, COUNT = NexmarkSpec(), Schedule(5_000_000, 10_000.0, PLACE.partitions), 60, 7, 4
BIDS, PERSONS = events_schema("auction", "bidder", "price", "extra"), events_schema("id", "name", "city", "state")
START, STOP = FIRST * LENGTH, (FIRST + COUNT) * LENGTH


def messages():
    made = Batches(SPEC, SCHEDULE, LENGTH)
    return [Message(number, made.messages(number)[PLACE.partition], 1) for number in range(FIRST, FIRST + COUNT)]


def poll_of(found):
    return BatchPoll(PLACE, START, found, LENGTH)


def single():
    """The same events, each as a message of JSON."""
    step, first = PLACE.partitions, PLACE.partition
    values = records(SPEC, SCHEDULE)(0, STOP * step)[first::step]
    return JsonPoll(PLACE, START, [
        Message(at, values[at], SCHEDULE.due_ms(at * step + first)) for at in range(START, STOP)
    ])  # fmt: skip


@pytest.mark.parametrize(("kind", "schema"), [("bids", BIDS), ("persons", PERSONS)])
def test_batches_have_the_events_that_messages_of_json_have(kind, schema):
    together, apart = poll_of(messages()), single()
    wanted = apart.events(kind, schema, START, STOP)
    assert wanted.num_rows > 3
    assert together.events(kind, schema, START, STOP).equals(wanted)
    for start in range(START, STOP, 7):
        part = together.events(kind, schema, start, start + 7)
        assert part == apart.events(kind, schema, start, start + 7)
        assert together.reached_ns(start + 1) == apart.reached_ns(start + 1)
    assert (together.start, together.stop) == (START, STOP)


def streams(value):
    reader, found = pa.BufferReader(value), []
    while reader.tell() < len(value):
        found.append(pa.ipc.open_stream(reader).read_all())
    return found


def joined(tables):
    out = pa.BufferOutputStream()
    for table in tables:
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
    return out.getvalue().to_pybytes()


def with_bids(change):
    """A message whose bids are changed; they are the last of its streams."""
    found = streams(messages()[1].content)
    return joined([*found[:-1], change(found[-1])])


def told(content, events=True):
    found = messages()
    found[1] = replace(found[1], content=content)
    read = (lambda: poll_of(found).events("bids", BIDS, START, STOP)) if events else (lambda: poll_of(found))
    with pytest.raises(EnvironmentFailure) as failure:
        read()
    line = str(failure.value)
    assert f"topic input, partition 1, offset {FIRST + 1}: " in line
    assert "\n" not in line
    return line


def column(table, name, values):
    return table.set_column(table.schema.get_field_index(name), name, values)


def test_a_message_that_is_no_batch_is_named():
    whole = messages()[1].content
    for content in (b'{"kind":"bid","auction":1}', whole[:-100], whole + b"more", bytes(300)):
        assert "no Arrow batch" in told(content, events=False)
    for content in (None, b"", joined(streams(whole)[:2])):
        assert "not of ['auctions', 'bids', 'persons']" in told(content, events=False)
    other = streams(whole)[2].replace_schema_metadata({KIND: b"tweets"})
    assert "'tweets'" in told(joined([*streams(whole)[:2], other]), events=False)


def test_a_batch_with_another_schema_is_named():
    text = with_bids(lambda bids: column(bids, "price", bids["price"].cast(pa.string())))
    assert "price of bids is string, not int64" in told(text, events=False)
    for name in ("price", "at_ns", "channel"):
        without = with_bids(lambda bids, name=name: bids.drop([name]))
        assert f"bids has 0 columns {name}" in told(without, events=False)
        nothing = with_bids(
            lambda bids, name=name: column(bids, name, pa.nulls(bids.num_rows, bids.schema.field(name).type))
        )
        assert f"without a value for {name}" in told(nothing, events=False)
    twice = with_bids(lambda bids: bids.append_column("offset", bids["offset"]))
    assert "bids has 2 columns offset" in told(twice, events=False)
    more = with_bids(lambda bids: bids.append_column("more", pa.nulls(bids.num_rows)))
    found = messages()
    found[1] = replace(found[1], content=more)
    assert poll_of(found).events("bids", BIDS, START, STOP) == poll_of(messages()).events("bids", BIDS, START, STOP)


def test_batches_may_differ_in_whether_a_column_may_have_nulls():
    def strict(bids):
        return bids.cast(pa.schema([field.with_nullable(False) for field in bids.schema], bids.schema.metadata))

    found = messages()
    found[1] = replace(found[1], content=with_bids(strict))
    assert poll_of(found).events("bids", BIDS, START, STOP) == poll_of(messages()).events("bids", BIDS, START, STOP)


@pytest.mark.parametrize(
    "change",
    [
        lambda bids: bids.slice(1),
        lambda bids: pa.concat_tables([bids.slice(0, 3), bids.slice(2)]),
        lambda bids: column(bids, "offset", pa.compute.add(bids["offset"], LENGTH)),
        lambda bids: bids.take(list(range(bids.num_rows))[::-1]),
    ],
    ids=["one-less", "one-twice", "of-another", "backwards"],
)
def test_a_batch_without_exactly_its_events_is_named(change):
    assert "offsets" in told(with_bids(change), events=False)


def test_a_message_that_is_missing_is_named():
    found = messages()
    del found[1]
    with pytest.raises(EnvironmentFailure, match=f"offset {FIRST + 1}: no message has this offset"):
        poll_of(found)
