"""The dataflows of `ppa` on the testbed against their oracles in Spark SQL: the same results, in the same form."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from experiments.workloads.layered import LayeredSpec
from experiments.workloads.window_tree import WindowTreeSpec
from testbed.core.by_batch.cutting import Batching
from testbed.protocols import PROTOCOLS
from testbed.queries import as_messages
from testbed.recovery import by_name
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.integration.input_topics import topic
from tests.result_messages import fields
from tests.unit.testbed.queries import ppa_queries, window_trees
from tests.unit.testbed.queries.ppa_queries import ROADS, SITE, SPREAD
from workloads.inputs import records
from workloads.queries import oracle
from workloads.schedule import Schedule

pytestmark = pytest.mark.extended

EVENTS, RATE, READ = 4000, 200.0, 25
START_NS = 1_795_173_799_675_000_000
FLOWS: dict[str, LayeredSpec] = {
    "the paper's tree": WindowTreeSpec(window_s=4.0, stream_seed=3),
    "an uneven tree": WindowTreeSpec(window_s=3.0, slide_s=0.5, parallelism=(5, 3, 3, 2), selectivity=0.7),
    "entries bound to servers": SITE,
    "entries that every server has": SPREAD,
    "incidents": ROADS,
}


def by_sql(spark: SparkSession, spec: LayeredSpec) -> Counter[tuple]:
    schedule = Schedule(START_NS, RATE, spec.sources)
    read = topic(spark, records(spec, schedule)(0, EVENTS), schedule)
    return Counter(tuple(row) for row in oracle(read, spec).collect())


def by_dataflow(spec: LayeredSpec) -> Counter[tuple]:
    """With a crash on the way, after which the lost partitions go back alone."""
    made = window_trees if isinstance(spec, WindowTreeSpec) else ppa_queries
    layout = made.laid_out(spec)
    options = {"faults": [Fault(CrashMoment.ANY, 2000, late=True)], "batching": Batching(250_000_000, 8)}
    inputs = made.inputs(spec, EVENTS, RATE, READ, START_NS)
    run = Simulation(layout, PROTOCOLS["batch-aligned"], inputs, 1, recovery=by_name("passive")(), **options)
    published = run.run().published
    arrays = [pa.array(column) for column in zip(*published.elements(), strict=True)]
    results = pa.RecordBatch.from_arrays(arrays, names=layout.channels[-1].schema.names)
    return Counter(fields(value) for _, value in as_messages(spec, results, spec.sources))


@pytest.mark.parametrize("flow", FLOWS)
def test_the_dataflow_gives_what_sql_gives(spark: SparkSession, flow: str) -> None:
    found = by_dataflow(FLOWS[flow])
    assert found == by_sql(spark, FLOWS[flow])
    assert len(found) > 100
