"""Unpacking messages with Arrow batches: whatever is wrong with a message is told in one line, with its place."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from spark_jobs.tables import batched_messages
from spark_jobs.tables.batched_messages import Unpack, events_in, message_by_message, results_in
from workloads.nexmark.batches import KIND, Batches, read
from workloads.schedule import Schedule

SPEC, PARTITIONS, RECORDS, NUMBER = NexmarkSpec(query=NexmarkQuery.Q12), 2, 50, 3
SCHEDULE = Schedule(10**15, 1000.0, PARTITIONS)
ENDS = {"input": {"0": 1000, "1": NUMBER * RECORDS + 20}}
MESSAGE = Batches(SPEC, SCHEDULE, RECORDS).messages(NUMBER)[1]


def unpacked(unpack: Unpack, topic: str, value: bytes | None) -> list[dict[str, Any]]:
    columns = {"topic": [topic], "partition": [1], "offset": [NUMBER], "arrived_ms": [7]}
    messages = pa.RecordBatch.from_pydict({**columns, "value": pa.array([value], pa.binary())})
    return [row for batch in message_by_message(unpack)(iter([messages])) for row in batch.to_pylist()]


def events(value: bytes | None) -> list[dict[str, Any]]:
    return unpacked(lambda message: events_in(ENDS, RECORDS, message), "input", value)


def results(value: bytes | None) -> list[dict[str, Any]]:
    return unpacked(lambda message: results_in(SPEC, PARTITIONS, message), "output", value)


def stream(batch: pa.RecordBatch) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batch.schema) as written:
        written.write_batch(batch)
    return out.getvalue().to_pybytes()


def with_item(item: pa.Array | None) -> bytes:
    """The message with another column of the auctions, which no query of the testbed reads."""
    found = read(MESSAGE, NUMBER * RECORDS, (NUMBER + 1) * RECORDS)
    at = found["auctions"].schema.get_field_index("item")
    auctions = found["auctions"].remove_column(at)
    found |= {"auctions": auctions if item is None else auctions.append_column("item", item)}
    return b"".join(stream(batch.replace_schema_metadata({KIND: kind.encode()})) for kind, batch in found.items())


AUCTIONS = read(MESSAGE, NUMBER * RECORDS, (NUMBER + 1) * RECORDS)["auctions"].num_rows


def test_the_events_before_the_end_are_unpacked() -> None:
    found = events(MESSAGE)
    assert [(row["topic"], row["partition"], row["offset"]) for row in found] == [
        ("input", 1, NUMBER * RECORDS + number) for number in range(20)
    ]
    assert {row["value"][:8] for row in found} == {b'{"kind":'}
    assert events(with_item(pa.array(["thing"] * AUCTIONS)))[0].keys() == found[0].keys()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "batches of [], not of ['auctions', 'bids', 'persons']"),
        (MESSAGE[:-50], "no Arrow batch: "),
        (with_item(None), "a batch with another schema: auctions has 0 columns item"),
        (with_item(pa.array(range(AUCTIONS))), "a batch with another schema: item of auctions is int64, not string"),
        (with_item(pa.nulls(AUCTIONS)), "a batch with another schema: item of auctions is null, not string"),
        (with_item(pa.nulls(AUCTIONS, pa.string())), "a batch of auctions without a value for item"),
        (with_item(pa.array(["a", None] * AUCTIONS)[:AUCTIONS]), "a batch of auctions without a value for item"),
    ],
    ids=["nothing", "cut-off", "lacks-column", "other-type", "no-type", "nulls", "null"],
)
def test_a_message_without_whole_events_is_named(value: bytes | None, why: str) -> None:
    with pytest.raises(ValueError, match=r"^the topic input") as told:
        events(value)
    assert str(told.value).startswith(f"the topic input, partition 1, offset {NUMBER}: {why}")
    assert "\n" not in str(told.value)


def test_what_nobody_thought_of_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(batched_messages, "as_json", fails)
    place = f"^the topic input, partition 1, offset {NUMBER}"
    with pytest.raises(ValueError, match=f"{place}: can't be read: RuntimeError: two lines$"):
        events(MESSAGE)


def test_results_are_unpacked_with_the_time_of_their_message() -> None:
    found = results(stream(pa.RecordBatch.from_pydict({"window_start_ns": [0, 0], "bidder": [1, 2], "bids": [3, 4]})))
    assert [row["arrived_ms"] for row in found] == [7, 7]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "no Arrow batch: "),
        (b'{"start_ms":0}', "no Arrow batch: "),
        (stream(pa.RecordBatch.from_pydict({"bidder": [1]})), "can't be read: KeyError: "),
    ],
    ids=["nothing", "json", "other-columns"],
)
def test_a_message_without_results_is_named(value: bytes | None, why: str) -> None:
    with pytest.raises(ValueError, match=f"^the topic output, partition 1, offset {NUMBER}: {why}"):
        results(value)
