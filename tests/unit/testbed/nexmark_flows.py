"""One of NexMark's queries on bids alone, for a measurement of pauses."""

from __future__ import annotations

import pyarrow as pa

from testbed.core.dataflow.graph import Dataflow
from testbed.core.dataflow.layout import Layout, lay_out
from testbed.operators import Aggregation, Delivery, tumbling

BIDS = pa.schema([(name, pa.int64()) for name in ("auction", "bidder", "price", "at_ns")])


def counted() -> Layout:
    """NexMark's Q12: a running count of each bidder's bids in tumbling windows, shuffled by bidder."""
    flow = Dataflow("q12")
    bids = flow.source("bids", BIDS, parallelism=2, time="at_ns")
    count = (Aggregation("bids", "count"),)
    bids.aggregate("count", "bidder", count, tumbling("at_ns", 10_000_000_000)).sink("out", Delivery.PLAIN)
    return lay_out(flow)
