"""The cyclic query of `checkmate` (section VI): which nodes can be reached from source nodes, and by which paths.

Records are changes: 1 for a new link or source, -1 for a deleted one. A join of changes gives changes, in any order in
which both sides arrive. So the sums of the outputs are exact, even if a deletion arrives before the creation. The
paper's join drops state that a deletion affects; here the deletion follows the paths that were made with the link.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from experiments.workloads.catalogue import ReachabilitySpec
from testbed.core.dataflow.graph import Dataflow
from testbed.operators import Delivery, Operator
from testbed.operators.keyed_state import KeyedState
from testbed.operators.state import State
from workloads.reachability.input import LINKS, SOURCES, THEN

PAIRS = pa.schema([*((name, SOURCES.field(name).type) for name in ("root", "path")), ("end", pa.int64())])
PAIRS = PAIRS.append(SOURCES.field("change"))
LINK_PORT, SOURCE_PORT = 0, 1
Key = TypeVar("Key", bound=Hashable)


class JoinChanges(Operator):
    """Links by the node at which they start, with sources by the node that they have reached: a change of either gives
    one for each of the other that is there."""

    joins = True
    keys = ("start", "node")

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        return PAIRS

    def open(self) -> None:
        self._links: KeyedState[int, tuple[int, int], int] = KeyedState()
        self._sources: KeyedState[int, tuple[int, str], int] = KeyedState()

    def states(self) -> dict[str, State]:
        return {"links": self._links, "sources": self._sources}

    def process(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        changes = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        rows = [row for each in changes for row in (self._on_link if port == LINK_PORT else self._on_source)(*each)]
        columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), PAIRS, strict=False)]
        return pa.RecordBatch.from_arrays(columns, schema=PAIRS) if rows else None

    def _on_link(self, link: int, start: int, end: int, change: int) -> Iterator[tuple[int, str, int, int]]:
        _add(self._links, start, (link, end), change)
        for (root, path), times in self._sources.items(start):
            yield root, path, end, change * times

    def _on_source(self, root: int, node: int, path: str, change: int) -> Iterator[tuple[int, str, int, int]]:
        _add(self._sources, node, (root, path), change)
        for (_, end), times in self._links.items(node):
            yield root, path, end, change * times


def _add(state: KeyedState[int, Key, int], node: int, what: Key, change: int) -> None:
    times = (state.get(node, what) or 0) + change
    if times:
        state.put(node, what, times)
    else:
        state.remove(node, what)


def reachability(spec: ReachabilitySpec, parallelism: int, delivery: Delivery) -> Dataflow:
    """Links and sources into the join; what leads to a node that is on the path already is left out; the rest goes out,
    and back into the join as a source that has reached one node more."""
    flow = Dataflow(spec.name)
    links = flow.source("links", LINKS, parallelism)
    sources = flow.source("sources", SOURCES, parallelism)
    pairs = flow.operator("join", JoinChanges(), links, sources)
    found = pairs.filter("select", _leads_on).map("project", _one_further)
    found.feed(pairs, SOURCE_PORT)
    found.sink("out", delivery)
    return flow


def packed_changes(results: pa.RecordBatch) -> Iterator[tuple[int, int, str, str]]:
    """Each change in the form of other results, start_ms, end_ms, key, value: `workloads.reachability.oracle` sums up.

    They have no window: what counts is what all of them together leave.
    """
    columns = (results.column(name).to_pylist() for name in ("root", "path", "change"))
    for root, path, change in zip(*columns, strict=True):
        yield 0, 0, f"{root} {path}", str(change)


def _leads_on(pairs: pa.RecordBatch) -> pa.Array:
    ends, paths = pairs.column("end").to_pylist(), pairs.column("path").to_pylist()
    return pa.array([str(end) not in path.split(THEN) for end, path in zip(ends, paths, strict=True)], pa.bool_())


def _one_further(pairs: pa.RecordBatch) -> pa.RecordBatch:
    end = pairs.column("end")
    path = pc.binary_join_element_wise(pairs.column("path"), pc.cast(end, pa.string()), THEN)
    return pa.RecordBatch.from_arrays([pairs.column("root"), end, path, pairs.column("change")], schema=SOURCES)
