"""NexMark's queries as dataflows: those of `workloads.nexmark.oracle`, each result once.

A source is named by the kind of its events, and has the columns that the query needs of them; `position` is the event's
in the stream, `at_ns` when it was due.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from experiments.workloads import NexmarkQuery, NexmarkSpec
from testbed.core.graph import Dataflow
from testbed.operators import Aggregation, Delivery, Emit, tumbling
from workloads.schedule import NS_PER_MS

Packed: TypeAlias = tuple[int, int, str, str]  # start_ms, end_ms, key, value

BIDS, AUCTIONS, PERSONS, DUE = "bids", "auctions", "persons", "at_ns"
TEXTS = ("name", "city", "state", "extra")
EURO_MILLI = 908  # thousandths of the other currency for one of the price's: exact in integers
CATEGORY, NEAR_STATES = 10, pa.array(["OR", "ID", "CA"])


def events_schema(*names: str) -> pa.Schema:
    """These columns of events: int64, but for the texts; `position` and `at_ns` come first."""
    return pa.schema([(name, pa.string() if name in TEXTS else pa.int64()) for name in ("position", "at_ns", *names)])


def q1(spec: NexmarkSpec, parallelism: int, delivery: Delivery) -> Dataflow:
    """Every bid with its price in another currency, in thousandths."""
    flow = Dataflow("q1")
    bids = flow.source(BIDS, events_schema("auction", "bidder", "price", "extra"), parallelism, due=DUE)
    bids.map("euros", _in_euros).sink("out", delivery)
    return flow


def q3(spec: NexmarkSpec, parallelism: int, delivery: Delivery) -> Dataflow:
    """Every auction of one category whose seller lives in one of three states: remembers all of both."""
    flow = Dataflow("q3")
    auctions = flow.source(AUCTIONS, events_schema("id", "seller", "category"), parallelism, due=DUE)
    persons = flow.source(PERSONS, events_schema("id", "name", "city", "state"), parallelism, due=DUE)
    wanted = auctions.filter("wanted", lambda batch: pc.equal(batch.column("category"), CATEGORY))
    near = persons.filter("near", lambda batch: pc.is_in(batch.column("state"), NEAR_STATES))
    wanted.join(near, "pairs", ("seller", "id")).sink("out", delivery)
    return flow


def q8(spec: NexmarkSpec, parallelism: int, delivery: Delivery) -> Dataflow:
    """Every auction of a person who is new in the same tumbling window."""
    flow = Dataflow("q8")
    auctions = flow.source(AUCTIONS, events_schema("id", "seller"), parallelism, time="at_ns")
    persons = flow.source(PERSONS, events_schema("id", "name"), parallelism, time="at_ns")
    windows = tumbling("at_ns", spec.window_ms * NS_PER_MS)
    auctions.join(persons, "pairs", ("seller", "id"), (windows, windows)).sink("out", delivery)
    return flow


def q12(spec: NexmarkSpec, parallelism: int, delivery: Delivery) -> Dataflow:
    """How many bids each bidder made in each tumbling window, when the window has closed."""
    flow = Dataflow("q12")
    bids = flow.source(BIDS, pa.schema([("at_ns", pa.int64()), ("bidder", pa.int64())]), parallelism, time="at_ns")
    windows = tumbling("at_ns", spec.window_ms * NS_PER_MS)
    counts = bids.aggregate("count", "bidder", (Aggregation("bids", "count"),), windows, Emit.ON_CLOSE)
    counts.sink("out", delivery)
    return flow


def _in_euros(bids: pa.RecordBatch) -> pa.RecordBatch:
    milli = pc.multiply(bids.column("price"), EURO_MILLI)
    return bids.set_column(bids.schema.get_field_index("price"), "euros_milli", milli)


QUERIES: dict[NexmarkQuery, Callable[[NexmarkSpec, int, Delivery], Dataflow]] = {
    NexmarkQuery.Q1: q1,
    NexmarkQuery.Q3: q3,
    NexmarkQuery.Q8: q8,
    NexmarkQuery.Q12: q12,
}


def place(position: int, partitions: int) -> str:
    """Where the record of a position is in an input of so many partitions, as `PARTITION:OFFSET`."""
    return f"{position % partitions}:{position // partitions}"


def _rows(results: pa.RecordBatch, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(results.column(name).to_pylist() for name in names), strict=True)


def _packed_bids(results: pa.RecordBatch, partitions: int, window_ms: int) -> Iterator[Packed]:
    names = ("position", "at_ns", "auction", "bidder", "euros_milli", "extra")
    for position, at_ns, auction, bidder, milli, extra in _rows(results, *names):
        due_ms, euros = at_ns // NS_PER_MS, f"{milli // 1000}.{milli % 1000:03d}"
        value = f'{{"auction":{auction},"bidder":{bidder},"euros":{euros},"extra":"{extra}"}}'
        yield due_ms, due_ms, place(position, partitions), value


def _packed_pairs(*values: tuple[str, str]) -> Callable[[pa.RecordBatch, int, int], Iterator[Packed]]:
    """For pairs of an auction and a person: the names of their values in a result, and the columns that have them."""
    keys, columns = zip(*values, strict=True)

    def packed(results: pa.RecordBatch, partitions: int, window_ms: int) -> Iterator[Packed]:
        names = ("position", "position_right", "at_ns", "at_ns_right", *columns)
        for auction, person, at_ns, person_at_ns, *found in _rows(results, *names):
            due_ms = max(at_ns, person_at_ns) // NS_PER_MS
            value = json.dumps(dict(zip(keys, found, strict=True)), separators=(",", ":"))
            yield due_ms, due_ms, f"{place(auction, partitions)},{place(person, partitions)}", value

    return packed


def _packed_counts(results: pa.RecordBatch, partitions: int, window_ms: int) -> Iterator[Packed]:
    for bidder, start_ns, bids in _rows(results, "bidder", "window_start_ns", "bids"):
        start_ms = start_ns // NS_PER_MS
        yield start_ms, start_ms + window_ms, str(bidder), f'{{"bids":{bids}}}'


PACKED: dict[NexmarkQuery, Callable[[pa.RecordBatch, int, int], Iterator[Packed]]] = {
    NexmarkQuery.Q1: _packed_bids,
    NexmarkQuery.Q3: _packed_pairs(("name", "name"), ("city", "city"), ("state", "state"), ("auction", "id")),
    NexmarkQuery.Q8: _packed_pairs(("person", "seller"), ("name", "name"), ("auction", "id")),
    NexmarkQuery.Q12: _packed_counts,
}
