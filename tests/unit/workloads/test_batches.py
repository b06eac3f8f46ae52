"""Events as Arrow batches are those of the messages of JSON, with their due times, under one schedule or several."""

import json

import pyarrow as pa
import pytest

from experiments.loads import MOST_BATCHED
from experiments.workloads.catalogue import NexmarkSpec
from workloads.inputs import records
from workloads.nexmark.batches import KINDS, Batches, as_json, read
from workloads.schedule import Schedule

SPEC, PARTITIONS, RECORDS = NexmarkSpec(), 3, 40
LENGTH = PARTITIONS * RECORDS
FIRST = Schedule(10**15, 1000.0, PARTITIONS)
KAFKA_TAKES = 1_000_000  # bytes of a message, by default


def unpacked(batches, number):
    """The records of the messages with this number: partition, offset, due time and event."""
    for partition, value in enumerate(batches.messages(number)):
        found = read(value, number * RECORDS, (number + 1) * RECORDS)
        for offset, due_ms, text in zip(*as_json(found), strict=True):
            yield (partition, int(offset)), (int(due_ms), json.loads(text))


def as_messages_of_json(schedule, start, stop):
    values = records(SPEC, schedule)(start, stop)
    for position, value in zip(range(start, stop), values, strict=True):
        place = (position % PARTITIONS, position // PARTITIONS)
        yield place, (schedule.due_ms(position), json.loads(value))


def test_batches_unpack_to_the_messages_of_json():
    batches = Batches(SPEC, FIRST, RECORDS)
    found = dict(each for number in range(5) for each in unpacked(batches, number))
    assert found == dict(as_messages_of_json(FIRST, 0, 5 * LENGTH))
    assert {event["kind"] for _, event in found.values()} == {"person", "auction", "bid"}


@pytest.mark.parametrize("changes", [(300,), (240,), (250, 260, 470)], ids=["amid", "between", "thrice"])
def test_a_batch_keeps_the_due_times_of_the_schedules_that_its_events_are_of(changes):
    batches, schedule, wanted, start = Batches(SPEC, FIRST, RECORDS), FIRST, {}, 0
    for count, position in enumerate(changes, 1):
        wanted |= dict(as_messages_of_json(schedule, start, position))
        schedule, start = Schedule(FIRST.start_ns + count * 10**10, 500.0 * count, PARTITIONS), position
        batches.follow(schedule, position)
    wanted |= dict(as_messages_of_json(schedule, start, 6 * LENGTH))
    assert dict(each for number in range(6) for each in unpacked(batches, number)) == wanted


def test_the_largest_batch_fits_into_a_message():
    """On 50 partitions, those of auctions have nothing else, and no event is longer."""
    batches = Batches(SPEC, Schedule(10**15, 1000.0, 50), MOST_BATCHED)
    assert KAFKA_TAKES / 2 < max(map(len, batches.messages(3))) < KAFKA_TAKES


def test_what_is_no_batch_is_told():
    value = Batches(SPEC, FIRST, RECORDS).messages(2)[1]
    span = 2 * RECORDS, 3 * RECORDS
    assert set(read(value, *span)) == set(KINDS)
    assert read(value, 0, RECORDS) == f"its events are not those of offsets 0 to {RECORDS - 1}, each once"
    assert "no Arrow batch" in read(b'{"kind":"bid"}', *span)
    assert "no Arrow batch" in read(value[:-50], *span)
    assert read(b"", *span) == "batches of [], not of ['auctions', 'bids', 'persons']"
    out = pa.BufferOutputStream()
    bids = read(value, *span)["bids"].drop_columns(["at_ns"])
    for kind, batch in (read(value, *span) | {"bids": bids}).items():
        with pa.ipc.new_stream(out, batch.schema.with_metadata({b"kind": kind.encode()})) as stream:
            stream.write_batch(batch.replace_schema_metadata({b"kind": kind.encode()}))
    assert read(out.getvalue().to_pybytes(), *span) == "a batch with another schema: bids has 0 columns at_ns"
