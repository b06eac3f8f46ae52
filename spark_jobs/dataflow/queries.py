"""NexMark's queries as dataflows, by the definitions of `workloads.nexmark.oracle`: each result once.

Records are bids with the columns that a query needs; `position` is the event's in the stream, `at_ns` when it was due.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from experiments.errors import BadInput
from experiments.workloads import NexmarkQuery, NexmarkSpec
from spark_jobs.dataflow.graph import Dataflow
from spark_jobs.dataflow.operators import Aggregation, Delivery, Emit, tumbling

Packed: TypeAlias = tuple[int, int, str, str]  # start_ms, end_ms, key, value

BIDS, NS_PER_MS = "bids", 1_000_000
NUMBERS = ("position", "at_ns", "auction", "bidder", "price")
EURO_MILLI = 908  # thousandths of the other currency for one of the price's: exact in integers


def bids_schema(*names: str) -> pa.Schema:
    """These columns of a bid: numbers are int64, others texts."""
    return pa.schema([(name, pa.int64() if name in NUMBERS else pa.string()) for name in names])


def q1(spec: NexmarkSpec, parallelism: int, delivery: Delivery) -> Dataflow:
    """Every bid with its price in another currency, in thousandths."""
    flow = Dataflow("q1")
    bids = flow.source(BIDS, bids_schema("position", "at_ns", "auction", "bidder", "price", "extra"), parallelism)
    bids.map("euros", _in_euros).sink("out", delivery)
    return flow


def q12(spec: NexmarkSpec, parallelism: int, delivery: Delivery) -> Dataflow:
    """How many bids each bidder made in each tumbling window, when the window has closed."""
    flow = Dataflow("q12")
    bids = flow.source(BIDS, bids_schema("at_ns", "bidder"), parallelism, time="at_ns")
    windows = tumbling("at_ns", spec.window_ms * NS_PER_MS)
    counts = bids.aggregate("count", "bidder", (Aggregation("bids", "count"),), windows, Emit.ON_CLOSE)
    counts.sink("out", delivery)
    return flow


QUERIES: dict[NexmarkQuery, Callable[[NexmarkSpec, int, Delivery], Dataflow]] = {
    NexmarkQuery.Q1: q1,
    NexmarkQuery.Q12: q12,
}


def dataflow(spec: NexmarkSpec, parallelism: int, delivery: Delivery) -> Dataflow:
    """The dataflow of a query; raises `BadInput` for one that the testbed doesn't have."""
    if spec.query not in QUERIES:
        raise BadInput("workload.query", spec.query.value, ", ".join(QUERIES))
    return QUERIES[spec.query](spec, parallelism, delivery)


def _in_euros(bids: pa.RecordBatch) -> pa.RecordBatch:
    milli = pc.multiply(bids.column("price"), EURO_MILLI)
    return bids.set_column(bids.schema.get_field_index("price"), "euros_milli", milli)


def as_messages(spec: NexmarkSpec, results: pa.RecordBatch, partitions: int) -> Iterator[tuple[str, str]]:
    """Key and value of each result as a message, as the Structured Streaming queries write them.

    `partitions`: of the input, by which a position tells the place of a record.
    """
    rows = _PACKED[spec.query](results, partitions, spec.window_ms)
    for start_ms, end_ms, key, value in rows:
        body = {"start_ms": start_ms, "end_ms": end_ms, "key": key, "value": value}
        yield f"{start_ms}|{key}", json.dumps(body, separators=(",", ":"))


def _packed_bids(results: pa.RecordBatch, partitions: int, window_ms: int) -> Iterator[Packed]:
    names = ("position", "at_ns", "auction", "bidder", "euros_milli", "extra")
    for position, at_ns, auction, bidder, milli, extra in zip(
        *(results.column(name).to_pylist() for name in names), strict=True
    ):
        due_ms, euros = at_ns // NS_PER_MS, f"{milli // 1000}.{milli % 1000:03d}"
        value = f'{{"auction":{auction},"bidder":{bidder},"euros":{euros},"extra":"{extra}"}}'
        yield due_ms, due_ms, f"{position % partitions}:{position // partitions}", value


def _packed_counts(results: pa.RecordBatch, partitions: int, window_ms: int) -> Iterator[Packed]:
    names = ("bidder", "window_start_ns", "bids")
    for bidder, start_ns, bids in zip(*(results.column(name).to_pylist() for name in names), strict=True):
        start_ms = start_ns // NS_PER_MS
        yield start_ms, start_ms + window_ms, str(bidder), f'{{"bids":{bids}}}'


_PACKED = {NexmarkQuery.Q1: _packed_bids, NexmarkQuery.Q12: _packed_counts}
