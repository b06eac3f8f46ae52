"""The queries over hashtags on the testbed against their oracle in Spark SQL: the same results, in the same form."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from experiments.workloads.hashtags import HashtagsSpec, HashtagTopology
from testbed.core.by_batch.cutting import Batching
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.queries import as_messages, dataflow
from testbed.queries.hashtags import COUNTS
from testbed.recovery import by_name
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.integration.input_topics import topic
from tests.result_messages import fields
from workloads.hashtags.input import records, tweets
from workloads.queries import oracle
from workloads.schedule import Schedule

pytestmark = pytest.mark.extended

EVENTS, RATE, READ, SOURCES = 120, 20.0, 10, 2
START_NS = 1_795_173_799_675_000_000


def by_sql(spark: SparkSession, spec: HashtagsSpec) -> Counter[tuple]:
    schedule = Schedule(START_NS, RATE, SOURCES)
    read = topic(spark, records(spec, schedule)(0, EVENTS), schedule)
    return Counter(tuple(row) for row in oracle(read, spec).collect())


def by_dataflow(spec: HashtagsSpec) -> Counter[tuple]:
    """With a crash on the way, after which the lost partitions go back alone."""
    made = tweets(spec, Schedule(START_NS, RATE), 0, EVENTS)
    mine = [made.take(list(range(index, EVENTS, SOURCES))) for index in range(SOURCES)]
    inputs = {"tweets": [[rows.slice(at, READ) for at in range(0, rows.num_rows, READ)] for rows in mine]}
    layout = lay_out(dataflow(spec, SOURCES, Delivery.EXACTLY_ONCE))
    options = {"faults": [Fault(CrashMoment.ANY, 2000, late=True)], "batching": Batching(500_000_000, 4)}
    run = Simulation(layout, PROTOCOLS["batch-aligned"], inputs, 1, recovery=by_name("passive")(), **options)
    arrays = [pa.array(column) for column in zip(*run.run(200_000).published.elements(), strict=True)]
    results = pa.RecordBatch.from_arrays(arrays, schema=COUNTS)
    return Counter(fields(value) for _, value in as_messages(spec, results, SOURCES))


@pytest.mark.parametrize("topology", list(HashtagTopology))
def test_the_dataflow_gives_what_sql_gives(spark: SparkSession, topology: HashtagTopology) -> None:
    spec = HashtagsSpec(topology=topology, hashtags=20, stream_seed=3)
    found = by_dataflow(spec)
    assert found == by_sql(spark, spec)
    assert len(found) > 100
