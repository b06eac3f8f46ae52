"""The workloads that the testbed has as dataflows: the cyclic one, those of papers, and NexMark's queries.

`reachability`, `window_tree`, `top_100`, `incidents`, `hashtags` and `cec_prices` have the first. NexMark's queries are
those of `workloads.nexmark.oracle`: each result once.

A source is named by the kind of its events, and has the columns that the query needs of them; `position` is the event's
in the stream, `at_ns` when it was due.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from experiments.cec_prices import CecPricesSpec
from experiments.errors import BadInput
from experiments.hashtags import HashtagsSpec
from experiments.layered import LayeredSpec
from experiments.ppa_queries import IncidentsSpec, Top100Spec
from experiments.window_tree import WindowTreeSpec
from experiments.workloads import NexmarkQuery, NexmarkSpec, ReachabilitySpec
from testbed.cec_prices import cec_prices, packed_averages
from testbed.core.graph import Dataflow
from testbed.hashtags import hashtags, packed_counts
from testbed.incidents import incidents, packed_incidents
from testbed.operators import Aggregation, Delivery, Emit, tumbling
from testbed.reachability import packed_changes, reachability
from testbed.top_100 import packed_entries, top_100
from testbed.window_tree import packed_tuples, window_tree
from workloads.schedule import NS_PER_MS

TestbedWorkload: TypeAlias = (
    NexmarkSpec | ReachabilitySpec | WindowTreeSpec | Top100Spec | IncidentsSpec | HashtagsSpec | CecPricesSpec
)
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


BATCH = "batch"
QUERIES: dict[NexmarkQuery, Callable[[NexmarkSpec, int, Delivery], Dataflow]] = {
    NexmarkQuery.Q1: q1,
    NexmarkQuery.Q3: q3,
    NexmarkQuery.Q8: q8,
    NexmarkQuery.Q12: q12,
}


def dataflow(spec: TestbedWorkload, parallelism: int, delivery: Delivery) -> Dataflow:
    """The dataflow of a workload; raises `BadInput` for a query that the testbed doesn't have.

    parallelism   of the sources, and of operators and sinks unless the workload says theirs. Raises `BadInput` for
                  another one than a workload says of its sources
    """
    if isinstance(spec, ReachabilitySpec):
        return reachability(spec, parallelism, delivery)
    if isinstance(spec, LayeredSpec):
        return _layered(spec, parallelism, delivery)
    if isinstance(spec, HashtagsSpec):
        return hashtags(spec, parallelism, delivery)
    if isinstance(spec, CecPricesSpec):
        return cec_prices(spec, parallelism, delivery)
    if spec.query not in QUERIES:
        raise BadInput("workload.query", spec.query.value, ", ".join(QUERIES))
    return QUERIES[spec.query](spec, parallelism, delivery)


def _layered(spec: WindowTreeSpec | Top100Spec | IncidentsSpec, parallelism: int, delivery: Delivery) -> Dataflow:
    if parallelism != spec.sources:
        raise BadInput("parallelism", parallelism, f"{spec.sources}, the first of workload.parallelism")
    if isinstance(spec, WindowTreeSpec):
        return window_tree(spec, delivery)
    return top_100(spec, delivery) if isinstance(spec, Top100Spec) else incidents(spec, delivery)


def _in_euros(bids: pa.RecordBatch) -> pa.RecordBatch:
    milli = pc.multiply(bids.column("price"), EURO_MILLI)
    return bids.set_column(bids.schema.get_field_index("price"), "euros_milli", milli)


def as_messages(spec: TestbedWorkload, results: pa.RecordBatch, partitions: int) -> Iterator[tuple[str, str]]:
    """Key and value of each result as a message, as the Structured Streaming queries write them.

    `partitions`: of the input, by which a position tells the place of a record. Tentative results have the column
    `BATCH`, the same in all of them; their messages have it, too.
    """
    batch = {BATCH: results.column(BATCH)[0].as_py()} if BATCH in results.schema.names else {}
    rows: Iterable[Packed]
    if isinstance(spec, ReachabilitySpec):
        rows = packed_changes(results)
    elif isinstance(spec, WindowTreeSpec):
        found = packed_tuples(results, spec.window_ms)
        rows = ((start, end, _place(position, partitions), value) for start, end, position, value in found)
    elif isinstance(spec, Top100Spec):
        rows = packed_entries(results, spec.window_ms)
    elif isinstance(spec, IncidentsSpec):
        rows = packed_incidents(results, spec.window_ms)
    elif isinstance(spec, HashtagsSpec):
        rows = packed_counts(results, spec)
    elif isinstance(spec, CecPricesSpec):
        averages = packed_averages(results, spec)
        rows = ((due, due, _place(position, partitions), value) for due, position, value in averages)
    else:
        rows = _PACKED[spec.query](results, partitions, spec.window_ms)
    for start_ms, end_ms, key, value in rows:
        body = {"start_ms": start_ms, "end_ms": end_ms, "key": key, "value": value, **batch}
        yield f"{start_ms}|{key}", json.dumps(body, separators=(",", ":"))


def _rows(results: pa.RecordBatch, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(results.column(name).to_pylist() for name in names), strict=True)


def _place(position: int, partitions: int) -> str:
    return f"{position % partitions}:{position // partitions}"


def _packed_bids(results: pa.RecordBatch, partitions: int, window_ms: int) -> Iterator[Packed]:
    names = ("position", "at_ns", "auction", "bidder", "euros_milli", "extra")
    for position, at_ns, auction, bidder, milli, extra in _rows(results, *names):
        due_ms, euros = at_ns // NS_PER_MS, f"{milli // 1000}.{milli % 1000:03d}"
        value = f'{{"auction":{auction},"bidder":{bidder},"euros":{euros},"extra":"{extra}"}}'
        yield due_ms, due_ms, _place(position, partitions), value


def _packed_pairs(*values: tuple[str, str]) -> Callable[[pa.RecordBatch, int, int], Iterator[Packed]]:
    """For pairs of an auction and a person: the names of their values in a result, and the columns that have them."""
    keys, columns = zip(*values, strict=True)

    def packed(results: pa.RecordBatch, partitions: int, window_ms: int) -> Iterator[Packed]:
        names = ("position", "position_right", "at_ns", "at_ns_right", *columns)
        for auction, person, at_ns, person_at_ns, *found in _rows(results, *names):
            due_ms = max(at_ns, person_at_ns) // NS_PER_MS
            value = json.dumps(dict(zip(keys, found, strict=True)), separators=(",", ":"))
            yield due_ms, due_ms, f"{_place(auction, partitions)},{_place(person, partitions)}", value

    return packed


def _packed_counts(results: pa.RecordBatch, partitions: int, window_ms: int) -> Iterator[Packed]:
    for bidder, start_ns, bids in _rows(results, "bidder", "window_start_ns", "bids"):
        start_ms = start_ns // NS_PER_MS
        yield start_ms, start_ms + window_ms, str(bidder), f'{{"bids":{bids}}}'


_PACKED = {
    NexmarkQuery.Q1: _packed_bids,
    NexmarkQuery.Q3: _packed_pairs(("name", "name"), ("city", "city"), ("state", "state"), ("auction", "id")),
    NexmarkQuery.Q8: _packed_pairs(("person", "seller"), ("name", "name"), ("auction", "id")),
    NexmarkQuery.Q12: _packed_counts,
}
