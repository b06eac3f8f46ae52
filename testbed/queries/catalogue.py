"""Every workload of the testbed: its dataflow, and its results as messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa

from experiments.errors import BadInput
from experiments.workloads.catalogue import NexmarkSpec, ReachabilitySpec
from experiments.workloads.cec_prices import CecPricesSpec
from experiments.workloads.hashtags import HashtagsSpec
from experiments.workloads.layered import LayeredSpec
from experiments.workloads.ppa_queries import IncidentsSpec, Top100Spec
from experiments.workloads.window_tree import WindowTreeSpec
from testbed.core.dataflow.graph import Dataflow
from testbed.operators import Delivery, Source
from testbed.queries.cec_prices import cec_prices, packed_averages
from testbed.queries.hashtags import hashtags, packed_counts
from testbed.queries.incidents import incidents, packed_incidents
from testbed.queries.nexmark import AUCTIONS, BIDS, PACKED, PERSONS, QUERIES, place
from testbed.queries.reachability import packed_changes, reachability
from testbed.queries.result_batches import in_batches
from testbed.queries.result_columns import BATCH, Packed, ResultColumns, messages, of_rows
from testbed.queries.top_100 import packed_entries, top_100
from testbed.queries.window_tree import packed_tuples, window_tree

ByRow: TypeAlias = ReachabilitySpec | WindowTreeSpec | Top100Spec | IncidentsSpec | HashtagsSpec | CecPricesSpec
"""Workloads whose results become messages one by one, before these are put together by column."""
TestbedWorkload: TypeAlias = NexmarkSpec | ByRow


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


def event_kinds(spec: TestbedWorkload, parallelism: int) -> tuple[str, ...]:
    """The kinds of events in the input of a workload, as the sources of them are named: also those that no query of
    this one reads."""
    if isinstance(spec, NexmarkSpec):
        return BIDS, AUCTIONS, PERSONS
    nodes = dataflow(spec, parallelism, Delivery.PLAIN).nodes.values()
    return tuple(node.name for node in nodes if isinstance(node.element, Source))


def as_messages(
    spec: TestbedWorkload, results: pa.RecordBatch, partitions: int, batch_records: int | None = None
) -> Iterator[tuple[str | None, str | bytes]]:
    """Key and value of each message with these results: as the Structured Streaming queries write them, one result a
    message; or without a key, as Arrow batches of at most `batch_records` results.

    `partitions`: of the input, by which a position tells the place of a record. Tentative results have the column
    `BATCH`; their messages have it, too.
    """
    if batch_records is not None:
        return ((None, each) for each in in_batches(results, batch_records))
    batches = results.column(BATCH) if BATCH in results.schema.names else None
    return zip(*messages(_columns(spec, results, partitions), batches), strict=True)


def _columns(spec: TestbedWorkload, results: pa.RecordBatch, partitions: int) -> ResultColumns:
    if isinstance(spec, NexmarkSpec):
        return PACKED[spec.query](results, partitions, spec.window_ms)
    return of_rows(_rows(spec, results, partitions))


def _rows(spec: ByRow, results: pa.RecordBatch, partitions: int) -> Iterable[Packed]:
    if isinstance(spec, ReachabilitySpec):
        return packed_changes(results)
    if isinstance(spec, WindowTreeSpec):
        found = packed_tuples(results, spec.window_ms)
        return ((start, end, place(position, partitions), value) for start, end, position, value in found)
    if isinstance(spec, Top100Spec):
        return packed_entries(results, spec.window_ms)
    if isinstance(spec, IncidentsSpec):
        return packed_incidents(results, spec.window_ms)
    if isinstance(spec, HashtagsSpec):
        return packed_counts(results, spec)
    averages = packed_averages(results, spec)
    return ((due, due, place(position, partitions), value) for due, position, value in averages)
