"""The average prices of items (`cec`, section IV) as a dataflow: count windows over the purchases of an item."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from experiments.workloads.cec_prices import CecPricesSpec
from testbed.core.dataflow.graph import Dataflow
from testbed.operators import Delivery
from testbed.operators.count_windows import AVERAGE, CountWindows
from workloads.cec_prices.input import PRICE, PRICES
from workloads.json_records import PLACE
from workloads.schedule import NS_PER_MS

AT, ITEM = "at_ns", "item"


def cec_prices(spec: CecPricesSpec, parallelism: int, delivery: Delivery) -> Dataflow:
    """A source `prices`, a filter `dear` if there is one, the operator `average`, and a sink."""
    flow = Dataflow(spec.name)
    purchases = flow.source("prices", PRICES, parallelism, due=AT)
    if spec.least_price:
        purchases = purchases.filter("dear", lambda batch: pc.greater_equal(batch.column(PRICE), spec.least_price))
    windows = CountWindows(ITEM, PRICE, spec.window_records, (PLACE, AT))
    flow.operator("average", windows, purchases).sink("out", delivery)
    return flow


def packed_averages(results: pa.RecordBatch, spec: CecPricesSpec) -> Iterator[tuple[int, int, str]]:
    """For each result: when the record that closes the window was due [ms], its position, and the value."""
    columns = (results.column(name).to_pylist() for name in (PLACE, AT, ITEM, AVERAGE))
    for position, at_ns, item, average in zip(*columns, strict=True):
        milli = round(average * spec.window_records) * 1000 // spec.window_records
        yield at_ns // NS_PER_MS, position, f'{{"item":{item},"average_milli":{milli}}}'
