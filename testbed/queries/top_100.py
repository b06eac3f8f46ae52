"""The top-100 query (`ppa`, section VI-B, Q1): requests counted by slice, the counts merged, the top of each window.

The paper cuts the stream into slices of 100 tuples, as they come. Here a slice is what was requested in one slide of
the window: so results are a function of the input.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from experiments.workloads.ppa_queries import Top100Spec
from testbed.core.dataflow.graph import Dataflow
from testbed.operators import Aggregation, Delivery, sliding, tumbling
from testbed.operators.by_slide import BySlide, SlideTotals, totals, window_of
from workloads.schedule import NS_PER_MS
from workloads.top_100.input import REQUESTS, TOP

COUNTS = pa.schema([(name, pa.int64()) for name in ("at_ns", "entry", "requests")])
COUNT, SUM = Aggregation("requests", "count"), Aggregation("requests", "sum", "requests")


class TopEntries(BySlide):
    """The entries that were requested most in the window that ends with each slide; of equals the lower number."""

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        return COUNTS

    def ended(self, end: int) -> pa.RecordBatch:
        found = totals([rows for _, rows in self.window(end)], ("entry",), (SUM,), end - 1, COUNTS)
        most = np.argsort(-found.column("requests").to_numpy(), kind="stable")[:TOP]
        return found.take(pa.array(most))


def top_100(spec: Top100Spec, delivery: Delivery) -> Dataflow:
    """A source `requests`, `slices` and `merged` counts, `top` and its sink, which have one partition."""
    flow, (sources, slices, merged) = Dataflow(spec.name), spec.parallelism
    slide_ns = spec.slide_ms * NS_PER_MS
    slide = tumbling("at_ns", slide_ns)
    stream = flow.source("requests", REQUESTS, sources, time="at_ns")
    stream = flow.operator("slices", SlideTotals(slide, ("entry",), (COUNT,)), stream, parallelism=slices)
    stream = flow.operator("merged", SlideTotals(slide, ("entry",), (SUM,)), stream, parallelism=merged)
    window = sliding("at_ns", spec.window_ms * NS_PER_MS, slide_ns)
    flow.operator("top", TopEntries(window), stream, parallelism=1).sink("out", delivery)
    return flow


def packed_entries(results: pa.RecordBatch, window_ms: int) -> Iterator[tuple[int, int, str, str]]:
    """For each result: start_ms and end_ms of its window, the entry, and how often it was requested."""
    columns = (results.column(name).to_pylist() for name in COUNTS.names)
    for at_ns, entry, requests in zip(*columns, strict=True):
        yield *window_of(at_ns, window_ms), str(entry), f'{{"requests":{requests}}}'
