"""Average prices on the testbed against their oracle in Spark SQL: the same results, in the same form."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from experiments.workloads.cec_prices import CecPricesSpec
from testbed.core.by_batch.cutting import Batching
from testbed.core.dataflow.chaining import chained
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.queries import as_messages, dataflow
from testbed.recovery import by_name
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.integration.input_topics import topic
from tests.result_messages import fields
from workloads.cec_prices.input import prices, records
from workloads.queries import oracle
from workloads.schedule import Schedule

pytestmark = pytest.mark.extended

EVENTS, RATE, READ, SOURCES = 240, 40.0, 10, 2
START_NS = 1_795_173_799_675_000_000
SCHEDULE = Schedule(START_NS, RATE, SOURCES)


def by_sql(spark: SparkSession, spec: CecPricesSpec) -> Counter[tuple]:
    read = topic(spark, records(spec, SCHEDULE)(0, EVENTS), SCHEDULE)
    return Counter(tuple(row) for row in oracle(read, spec).collect())


def by_dataflow(spec: CecPricesSpec) -> Counter[tuple]:
    """With a crash on the way, after which the lost partitions go back alone."""
    made = prices(spec, SCHEDULE, 0, EVENTS)
    mine = [made.take(list(range(index, EVENTS, SOURCES))) for index in range(SOURCES)]
    inputs = {"prices": [[rows.slice(at, READ) for at in range(0, rows.num_rows, READ)] for rows in mine]}
    flow = chained(dataflow(spec, SOURCES, Delivery.EXACTLY_ONCE))
    schema = flow.edges[-1].schema
    options = {"faults": [Fault(CrashMoment.ANY, 500, late=True)], "batching": Batching(500_000_000, 2)}
    run = Simulation(lay_out(flow), PROTOCOLS["batch-aligned"], inputs, 1, recovery=by_name("passive")(), **options)
    arrays = [pa.array(column) for column in zip(*run.run(200_000).published.elements(), strict=True)]
    results = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return Counter(fields(value) for _, value in as_messages(spec, results, SOURCES))


@pytest.mark.parametrize(
    "spec",
    [
        CecPricesSpec(items=2, window_records=1, stream_seed=3),
        CecPricesSpec(items=2, window_records=100, stream_seed=3),
        CecPricesSpec(items=20, window_records=7, least_price=300, stream_seed=3),
    ],
)
def test_the_dataflow_gives_what_sql_gives(spark: SparkSession, spec: CecPricesSpec) -> None:
    found = by_dataflow(spec)
    assert found == by_sql(spark, spec)
    assert len(found) >= 2
