"""The testbed's queries against the oracle in SQL: the same results, in the same form as Structured Streaming's."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from experiments.workloads import NexmarkSpec
from spark_jobs.dataflow.layout import lay_out
from spark_jobs.dataflow.operators import Delivery
from spark_jobs.dataflow.protocols import PROTOCOLS
from spark_jobs.dataflow.queries import BIDS, QUERIES, as_messages, dataflow
from spark_jobs.dataflow.runtime.sources import columns, stream_of
from spark_jobs.dataflow.simulation import Simulation
from workloads.nexmark import messages
from workloads.nexmark.oracle import oracle
from workloads.nexmark.stream import events
from workloads.schedule import Schedule

EVENTS, RATE, PARTITIONS, BATCH = 3000, 200.0, 2, 100
START_NS = 1_795_173_799_675_000_000
SCHEMA = "value binary, partition int, offset long, timestamp timestamp"
SHORT = {"window_s": 4.0, "slide_s": 2.0}
SCHEDULE = Schedule(START_NS, RATE, PARTITIONS)


def by_sql(spark: SparkSession, spec: NexmarkSpec) -> Counter[tuple]:
    values = messages.records(spec, SCHEDULE)(0, EVENTS)
    due = [datetime.fromtimestamp(SCHEDULE.due_ms(p) / 1000, UTC) for p in range(EVENTS)]
    rows = [(value, p % PARTITIONS, p // PARTITIONS, due[p]) for p, value in enumerate(values)]
    return Counter(tuple(row) for row in oracle(spark.createDataFrame(rows, SCHEMA), spec).collect())


def by_dataflow(spec: NexmarkSpec) -> Counter[tuple]:
    layout = lay_out(dataflow(spec, PARTITIONS, Delivery.PLAIN))
    schema = layout.partitions[0].element.output
    bids = events(stream_of(spec, SCHEDULE), 0, EVENTS).bids
    numbers = bids["position"].to_numpy() % PARTITIONS
    inputs = []
    for number in range(PARTITIONS):
        own = columns(bids.filter(pa.array(numbers == number)), schema)
        inputs.append([own.slice(start, BATCH) for start in range(0, own.num_rows, BATCH)])
    written = Simulation(layout, PROTOCOLS["none"], {BIDS: inputs}, seed=1).run().written
    assert max(written.values()) == 1
    arrays = [pa.array(column) for column in zip(*written, strict=True)]
    results = pa.RecordBatch.from_arrays(arrays, names=layout.channels[-1].schema.names)
    found = (json.loads(value) for _, value in as_messages(spec, results, PARTITIONS))
    return Counter(tuple(each[name] for name in ("start_ms", "end_ms", "key", "value")) for each in found)


@pytest.mark.parametrize("query", list(QUERIES))
def test_the_dataflow_gives_what_sql_gives(spark: SparkSession, query: str) -> None:
    spec = NexmarkSpec(query=query, **SHORT)
    assert by_dataflow(spec) == by_sql(spark, spec)
