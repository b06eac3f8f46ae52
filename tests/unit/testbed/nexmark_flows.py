"""Two of NexMark's queries on bids alone: for measurements of what the core of the testbed costs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from testbed.core.dataflow.graph import Dataflow
from testbed.core.dataflow.layout import Layout, lay_out
from testbed.operators import Aggregation, Delivery, tumbling

BIDS = pa.schema([(name, pa.int64()) for name in ("auction", "bidder", "price", "at_ns")])


def converted() -> Layout:
    """NexMark's Q1: no state, no shuffle."""
    flow = Dataflow("q1")
    bids = flow.source("bids", BIDS, parallelism=2)
    bids.map("euro", lambda b: b.set_column(2, "price", pc.multiply(b.column("price"), 908))).sink(
        "out", Delivery.PLAIN
    )
    return lay_out(flow)


def counted() -> Layout:
    """NexMark's Q12: a running count of each bidder's bids in tumbling windows, shuffled by bidder."""
    flow = Dataflow("q12")
    bids = flow.source("bids", BIDS, parallelism=2, time="at_ns")
    count = (Aggregation("bids", "count"),)
    bids.aggregate("count", "bidder", count, tumbling("at_ns", 10_000_000_000)).sink("out", Delivery.PLAIN)
    return lay_out(flow)
