"""The testbed's queries against their oracles: the same results, in the same form as Structured Streaming's."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from experiments.workloads.catalogue import NexmarkSpec, ReachabilitySpec
from spark_jobs.tables.dataflow.journal_tables import END_OF_TIME_MS
from spark_jobs.tables.quality import closed, quality
from testbed.core.dataflow.layout import PartitionLayout, lay_out
from testbed.operators import Delivery, Source
from testbed.protocols import PROTOCOLS
from testbed.queries import QUERIES, as_messages, dataflow
from testbed.runtime.connectors.sources import columns, stream_of
from testbed.simulation import Simulation
from tests.integration.input_topics import topic
from tests.result_messages import fields
from workloads.nexmark import messages
from workloads.nexmark.oracle import oracle
from workloads.nexmark.stream import events_of
from workloads.queries import collected
from workloads.queries import oracle as oracle_of
from workloads.reachability.input import events_of as graph_events
from workloads.reachability.input import records as graph_records
from workloads.schedule import Schedule

pytestmark = pytest.mark.extended

EVENTS, RATE, PARTITIONS, BATCH, FEWEST = 3000, 200.0, 2, 100, 5
START_NS = 1_795_173_799_675_000_000
SHORT = {"window_s": 4.0, "slide_s": 2.0}
SCHEDULE = Schedule(START_NS, RATE, PARTITIONS)


def by_sql(spark: SparkSession, spec: NexmarkSpec) -> Counter[tuple]:
    values = messages.records(spec, SCHEDULE)(0, EVENTS)
    return Counter(tuple(row) for row in oracle(topic(spark, values, SCHEDULE), spec).collect())


def batches_of(spec: NexmarkSpec, source: PartitionLayout) -> list[pa.RecordBatch]:
    """What a partition of the topic has of the source's kind of events."""
    made = events_of(stream_of(spec, SCHEDULE), source.operator, 0, EVENTS)
    mine = made["position"].to_numpy() % PARTITIONS == source.index
    own = columns(made.filter(pa.array(mine)), source.element.output)
    return [own.slice(start, BATCH) for start in range(0, own.num_rows, BATCH)]


def by_dataflow(spec: NexmarkSpec) -> Counter[tuple]:
    layout = lay_out(dataflow(spec, PARTITIONS, Delivery.PLAIN))
    sources = [each for each in layout.partitions if isinstance(each.element, Source)]
    inputs: dict[str, list] = {each.operator: [] for each in sources}
    for each in sources:
        inputs[each.operator].append(batches_of(spec, each))
    written = Simulation(layout, PROTOCOLS["none"], inputs, seed=1).run().written
    assert max(written.values()) == 1
    arrays = [pa.array(column) for column in zip(*written, strict=True)]
    results = pa.RecordBatch.from_arrays(arrays, names=layout.channels[-1].schema.names)
    assert results.num_rows >= FEWEST
    return Counter(fields(value) for _, value in as_messages(spec, results, PARTITIONS))


@pytest.mark.parametrize("query", list(QUERIES))
def test_the_dataflow_gives_what_sql_gives(spark: SparkSession, query: str) -> None:
    spec = NexmarkSpec(query=query, **SHORT)
    assert by_dataflow(spec) == by_sql(spark, spec)


GRAPH, CHANGES = ReachabilitySpec(nodes=1500, stream_seed=3), "start_ms long, end_ms long, key string, value string"


def changes_of(spec: ReachabilitySpec) -> list[tuple]:
    """What the cyclic query writes about the first events."""
    layout = lay_out(dataflow(spec, PARTITIONS, Delivery.PLAIN))
    inputs = {
        kind: [[graph_events(spec, kind, at, at + BATCH) for at in range(p * BATCH, EVENTS, PARTITIONS * BATCH)]
               for p in range(PARTITIONS)]
        for kind in ("links", "sources")
    }  # fmt: skip
    written = Simulation(layout, PROTOCOLS["none"], inputs, seed=1).run().written
    columns = [pa.array(column) for column in zip(*written.elements(), strict=True)]
    results = pa.RecordBatch.from_arrays(columns, names=layout.channels[-1].schema.names)
    return [fields(value) for _, value in as_messages(spec, results, PARTITIONS)]


def judged(spark: SparkSession, changes: list[tuple]) -> tuple[int, ...]:
    """Exact, emitted, lost, duplicated and wrong paths."""
    values = graph_records(GRAPH, SCHEDULE)(0, EVENTS)
    exact = oracle_of(topic(spark, values, SCHEDULE), GRAPH)
    rows = [(*change, 0) for change in changes]
    sink = collected(spark.createDataFrame(rows, f"{CHANGES}, arrived_ms long"), GRAPH)
    (row,) = quality(sink, exact, closed(GRAPH, END_OF_TIME_MS, {})).collect()
    return tuple(row[name] for name in ("exact", "emitted", "lost", "duplicated", "wrong"))


def test_the_changes_of_the_cyclic_query_add_up_to_what_a_search_finds(spark: SparkSession) -> None:
    changes = changes_of(GRAPH)
    sums: Counter[str] = Counter()
    for _, _, key, change in changes:
        sums[key] += int(change)
    paths = sum(sums.values())
    assert any(change == "-1" for *_, change in changes)
    assert judged(spark, changes) == (paths, paths, 0, 0, 0)
    there = next(change for change in changes if sums[change[2]] == 1)
    others = [change for change in changes if change != there]
    assert judged(spark, others) == (paths, paths - 1, 1, 0, 0)
    assert judged(spark, [*others, there, there]) == (paths, paths + 1, 0, 1, 0)
    less = (*there[:3], "-2")
    assert judged(spark, [*changes, less]) == (paths, paths, 0, 0, 1)
    unreadable = [(*there[:3], None), (None, None, None, None)]
    assert judged(spark, [*changes, unreadable[0]]) == (paths, paths, 0, 0, 1)
    assert judged(spark, [*changes, unreadable[1]]) == (paths, paths + 1, 0, 0, 1)


def test_a_deletion_whose_creation_was_not_read_leaves_the_same_for_both(spark: SparkSession) -> None:
    read = [
        b'{"kind":"link","link":1,"start":5,"end":6,"change":-1}',
        b'{"kind":"source","root":1,"node":5,"path":"5","change":1}',
    ]
    exact = oracle_of(topic(spark, read, SCHEDULE), GRAPH)
    sink = collected(spark.createDataFrame([(0, 0, "1 5>6", "-1", 0)], f"{CHANGES}, arrived_ms long"), GRAPH)
    (row,) = quality(sink, exact, closed(GRAPH, END_OF_TIME_MS, {})).collect()
    assert tuple(row[name] for name in ("exact", "emitted", "lost", "duplicated", "wrong")) == (1, 1, 0, 0, 0)
