"""Dataflows whose lost partitions went back alone, against their oracles in Spark SQL: same results, same form."""

from __future__ import annotations

from collections import Counter
from types import ModuleType
from typing import NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from experiments.workloads.cec_prices import CecPricesSpec
from experiments.workloads.hashtags import HashtagsSpec, HashtagTopology
from experiments.workloads.layered import LayeredSpec
from experiments.workloads.window_tree import WindowTreeSpec
from testbed.core.by_batch.cutting import Batching
from testbed.core.dataflow.chaining import chained
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.queries import TestbedWorkload, as_messages, dataflow
from testbed.recovery import by_name
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.integration.input_topics import topic
from tests.result_messages import fields
from tests.unit.testbed.queries import average_prices, hashtag_queries, ppa_queries, window_trees
from tests.unit.testbed.queries.ppa_queries import ROADS, SITE, SPREAD
from workloads.inputs import records
from workloads.queries import oracle
from workloads.schedule import Schedule

pytestmark = pytest.mark.extended

START_NS, MOST_STEPS = 1_795_173_799_675_000_000, 200_000


class Run(NamedTuple):
    """How a query is run: by `made`, which has its input, with so many events at this rate [1/s].

    read        how many of them a source reads at once
    crash       after how many steps a worker crashes
    is_chained  whether sources do what operators behind them would do
    fewest      results that there must be
    """

    made: ModuleType
    events: int
    rate: float
    read: int
    crash: int
    batching: Batching
    fewest: int
    is_chained: bool = False


TAGS = Run(hashtag_queries, 120, 20.0, 10, crash=500, batching=Batching(500_000_000, 4), fewest=101)
PRICES = Run(average_prices, 240, 40.0, 10, 300, Batching(500_000_000, 2), fewest=2, is_chained=True)
TREE = Run(window_trees, 4000, 200.0, 25, crash=2000, batching=Batching(250_000_000, 8), fewest=101)
LAYERED = TREE._replace(made=ppa_queries)
CASES: dict[str, tuple[TestbedWorkload, Run]] = {
    **{each.value: (HashtagsSpec(topology=each, hashtags=20, stream_seed=3), TAGS) for each in HashtagTopology},
    "prices": (CecPricesSpec(items=2, window_records=1, stream_seed=3), PRICES),
    "prices of large windows": (CecPricesSpec(items=2, window_records=100, stream_seed=3), PRICES),
    "prices that are filtered": (CecPricesSpec(items=20, window_records=7, least_price=300, stream_seed=3), PRICES),
    "the paper's tree": (WindowTreeSpec(window_s=4.0, stream_seed=3), TREE),
    "an uneven tree": (
        WindowTreeSpec(window_s=3.0, slide_s=0.5, parallelism=(5, 3, 3, 2), selectivity=0.7),
        TREE,
    ),
    "entries bound to servers": (SITE, LAYERED),
    "entries that every server has": (SPREAD, LAYERED),
    "incidents": (ROADS, LAYERED),
}


def by_sql(spark: SparkSession, spec: TestbedWorkload, run: Run, sources: int) -> Counter[tuple]:
    schedule = Schedule(START_NS, run.rate, sources)
    read = topic(spark, records(spec, schedule)(0, run.events), schedule)
    return Counter(tuple(row) for row in oracle(read, spec).collect())


def by_dataflow(spec: TestbedWorkload, run: Run, sources: int) -> Counter[tuple]:
    flow = dataflow(spec, sources, Delivery.EXACTLY_ONCE)
    layout = lay_out(chained(flow) if run.is_chained else flow)
    given = {"start_ns": START_NS} | ({} if isinstance(spec, LayeredSpec) else {"sources": sources})
    inputs = run.made.inputs(spec, run.events, run.rate, run.read, **given)
    options = {"faults": [Fault(CrashMoment.ANY, run.crash, late=True)], "batching": run.batching}
    simulation = Simulation(layout, PROTOCOLS["batch-aligned"], inputs, 1, recovery=by_name("passive")(), **options)
    outcome = simulation.run(MOST_STEPS)
    assert outcome.crashes == 1, f"the run has {outcome.steps} steps only"
    arrays = [pa.array(column) for column in zip(*outcome.published.elements(), strict=True)]
    results = pa.RecordBatch.from_arrays(arrays, names=layout.channels[-1].schema.names)
    return Counter(fields(value) for _, value in as_messages(spec, results, sources))


@pytest.mark.parametrize("case", CASES)
def test_the_dataflow_gives_what_sql_gives(spark: SparkSession, case: str) -> None:
    spec, run = CASES[case]
    sources = spec.sources if isinstance(spec, LayeredSpec) else 2
    found = by_dataflow(spec, run, sources)
    assert found == by_sql(spark, spec, run, sources)
    assert len(found) >= run.fewest
