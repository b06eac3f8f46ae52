"""NexMark's queries as dataflows: those of `workloads.nexmark.oracle`, each result once.

A source is named by the kind of its events, and has the columns that the query needs of them; `position` is the event's
in the stream, `at_ns` when it was due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from testbed.core.dataflow.graph import Dataflow
from testbed.operators import Aggregation, Delivery, Emit, tumbling
from testbed.queries.result_columns import ResultColumns, as_text, escaped, joined
from workloads.schedule import NS_PER_MS

Pack: TypeAlias = Callable[[pa.RecordBatch, int, int], ResultColumns]
"""Results as columns of messages: from what a sink has, the partitions of the input, and window_ms."""

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
    """Where the record of a position is in an input with `partitions` partitions, as `PARTITION:OFFSET`."""
    return f"{position % partitions}:{position // partitions}"


def _places(positions: pa.Array, partitions: int) -> pa.Array:
    """The same for many positions."""
    offsets, numbers = np.divmod(positions.to_numpy(), partitions)
    return joined(as_text(numbers), ":", as_text(offsets))


def _ms(times_ns: pa.Array) -> NDArray[np.int64]:
    found: NDArray[np.int64] = times_ns.to_numpy() // NS_PER_MS
    return found


def _packed_bids(results: pa.RecordBatch, partitions: int, window_ms: int) -> ResultColumns:
    due_ms, (euros, milli) = pa.array(_ms(results["at_ns"])), np.divmod(results["euros_milli"].to_numpy(), 1000)
    price = joined(as_text(euros), ".", pc.utf8_lpad(as_text(milli), 3, "0"))
    ids = (as_text(results[name]) for name in ("auction", "bidder"))
    value = joined(*_between(('{"auction":', ',"bidder":'), ids), ',"euros":', price)
    value = joined(value, ',"extra":"', escaped(results["extra"]), '"}')
    return ResultColumns(due_ms, due_ms, _places(results["position"], partitions), value)


def _packed_pairs(*values: tuple[str, str]) -> Pack:
    """For pairs of an auction and a person: the names of their values in a result, and the columns that have them."""

    def packed(results: pa.RecordBatch, partitions: int, window_ms: int) -> ResultColumns:
        due_ms = pa.array(np.maximum(_ms(results["at_ns"]), _ms(results["at_ns_right"])))
        auctions, persons = (_places(results[name], partitions) for name in ("position", "position_right"))
        leads = [f'{"," if number else "{"}"{key}":' for number, (key, _) in enumerate(values)]
        value = joined(*_between(leads, (_json(results[name]) for _, name in values)), "}")
        return ResultColumns(due_ms, due_ms, joined(auctions, ",", persons), value)

    return packed


def _packed_counts(results: pa.RecordBatch, partitions: int, window_ms: int) -> ResultColumns:
    start_ms = _ms(results["window_start_ns"])
    value = joined('{"bids":', as_text(results["bids"]), "}")
    return ResultColumns(pa.array(start_ms), pa.array(start_ms + window_ms), as_text(results["bidder"]), value)


def _json(column: pa.Array) -> pa.Array:
    """Numbers or texts as JSON."""
    return joined('"', escaped(column), '"') if pa.types.is_string(column.type) else as_text(column)


def _between(leads: Iterable[str], texts: Iterable[pa.Array]) -> Iterator[str | pa.Array]:
    """Each text behind its lead."""
    return chain.from_iterable(zip(leads, texts, strict=True))


PACKED: dict[NexmarkQuery, Pack] = {
    NexmarkQuery.Q1: _packed_bids,
    NexmarkQuery.Q3: _packed_pairs(("name", "name"), ("city", "city"), ("state", "state"), ("auction", "id")),
    NexmarkQuery.Q8: _packed_pairs(("person", "seller"), ("name", "name"), ("auction", "id")),
    NexmarkQuery.Q12: _packed_counts,
}
