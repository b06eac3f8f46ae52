"""Every workload of the testbed: its dataflow, and its results as messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa

from experiments.cec_prices import CecPricesSpec
from experiments.errors import BadInput
from experiments.hashtags import HashtagsSpec
from experiments.layered import LayeredSpec
from experiments.ppa_queries import IncidentsSpec, Top100Spec
from experiments.window_tree import WindowTreeSpec
from experiments.workloads import NexmarkSpec, ReachabilitySpec
from testbed.core.graph import Dataflow
from testbed.operators import Delivery
from testbed.queries.cec_prices import cec_prices, packed_averages
from testbed.queries.hashtags import hashtags, packed_counts
from testbed.queries.incidents import incidents, packed_incidents
from testbed.queries.nexmark import PACKED, QUERIES, Packed, place
from testbed.queries.reachability import packed_changes, reachability
from testbed.queries.top_100 import packed_entries, top_100
from testbed.queries.window_tree import packed_tuples, window_tree

TestbedWorkload: TypeAlias = (
    NexmarkSpec | ReachabilitySpec | WindowTreeSpec | Top100Spec | IncidentsSpec | HashtagsSpec | CecPricesSpec
)

BATCH = "batch"


def dataflow(spec: TestbedWorkload, parallelism: int, delivery: Delivery) -> Dataflow:
    """The dataflow of a workload; raises `BadInput` for a query that the testbed doesn't have.

    parallelism   of the sources, and of operators and sinks unless the workload says theirs. Raises `BadInput` for
                  another one than a workload says of its sources
    """
    if isinstance(spec, ReachabilitySpec):
        return reachability(spec, parallelism, delivery)
    if isinstance(spec, LayeredSpec):
        return _layered(spec, parallelism, delivery)
    if isinstance(spec, HashtagsSpec):
        return hashtags(spec, parallelism, delivery)
    if isinstance(spec, CecPricesSpec):
        return cec_prices(spec, parallelism, delivery)
    if spec.query not in QUERIES:
        raise BadInput("workload.query", spec.query.value, ", ".join(QUERIES))
    return QUERIES[spec.query](spec, parallelism, delivery)


def _layered(spec: WindowTreeSpec | Top100Spec | IncidentsSpec, parallelism: int, delivery: Delivery) -> Dataflow:
    if parallelism != spec.sources:
        raise BadInput("parallelism", parallelism, f"{spec.sources}, the first of workload.parallelism")
    if isinstance(spec, WindowTreeSpec):
        return window_tree(spec, delivery)
    return top_100(spec, delivery) if isinstance(spec, Top100Spec) else incidents(spec, delivery)


def as_messages(spec: TestbedWorkload, results: pa.RecordBatch, partitions: int) -> Iterator[tuple[str, str]]:
    """Key and value of each result as a message, as the Structured Streaming queries write them.

    `partitions`: of the input, by which a position tells the place of a record. Tentative results have the column
    `BATCH`, the same in all of them; their messages have it, too.
    """
    batch = {BATCH: results.column(BATCH)[0].as_py()} if BATCH in results.schema.names else {}
    rows: Iterable[Packed]
    if isinstance(spec, ReachabilitySpec):
        rows = packed_changes(results)
    elif isinstance(spec, WindowTreeSpec):
        found = packed_tuples(results, spec.window_ms)
        rows = ((start, end, place(position, partitions), value) for start, end, position, value in found)
    elif isinstance(spec, Top100Spec):
        rows = packed_entries(results, spec.window_ms)
    elif isinstance(spec, IncidentsSpec):
        rows = packed_incidents(results, spec.window_ms)
    elif isinstance(spec, HashtagsSpec):
        rows = packed_counts(results, spec)
    elif isinstance(spec, CecPricesSpec):
        averages = packed_averages(results, spec)
        rows = ((due, due, place(position, partitions), value) for due, position, value in averages)
    else:
        rows = PACKED[spec.query](results, partitions, spec.window_ms)
    for start_ms, end_ms, key, value in rows:
        body = {"start_ms": start_ms, "end_ms": end_ms, "key": key, "value": value, **batch}
        yield f"{start_ms}|{key}", json.dumps(body, separators=(",", ":"))
