"""Operator chaining: a source executes the maps and filters that follow it.

These depend only on their input, so their output can be made again from the source's positions. It needs no log, and no
message is sent in between. The name is Flink's.
"""

from __future__ import annotations

from dataclasses import replace

from testbed.core.dataflow.graph import Dataflow, Edge, Node
from testbed.operators import Filter, Map, Source


def chained(flow: Dataflow) -> Dataflow:
    """The dataflow with every map or filter left out that alone reads a source, partition by partition, or alone
    reads one that is left out; the source does it. Names and results are the same."""
    nodes, edges = dict(flow.nodes), list(flow.edges)
    for source in flow.nodes.values():
        if not isinstance(element := source.element, Source):
            continue
        while (found := _follower(source, nodes, edges)) is not None:
            follower, operator = found
            element = replace(element, then=(*element.then, operator))
            source = replace(source, element=element)
            nodes[source.name] = source
            del nodes[follower.name]
            edges = [_without(follower, source, edge) for edge in edges if edge.receiver != follower.name]
    return Dataflow(flow.name, nodes, edges)


def _follower(source: Node, nodes: dict[str, Node], edges: list[Edge]) -> tuple[Node, Map | Filter] | None:
    """The map or filter that alone reads this source and nothing else: its node, and the operator."""
    readers = [edge.receiver for edge in edges if edge.sender == source.name]
    if len(readers) != 1:
        return None
    reader = nodes[readers[0]]
    fed = sum(edge.receiver == reader.name for edge in edges)
    if not isinstance(reader.element, Map | Filter) or fed > 1 or reader.parallelism != source.parallelism:
        return None
    return reader, reader.element


def _without(follower: Node, source: Node, edge: Edge) -> Edge:
    return replace(edge, sender=source.name) if edge.sender == follower.name else edge
