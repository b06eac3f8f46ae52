"""A dataflow as text and as a Mermaid graph."""

from __future__ import annotations

from testbed.core.dataflow.graph import Dataflow, Edge, Node
from testbed.operators import Sink, Source

SHAPES = {Source: ("([", "])"), Sink: ("[[", "]]")}


def as_text(flow: Dataflow) -> str:
    """One line for each operator: what it is, its parallelism, and what it reads."""
    lines = [f"dataflow {flow.name}"]
    for node in flow.nodes.values():
        reads = [f"{edge.sender}{_by(edge)}" for edge in flow.edges if edge.receiver == node.name]
        lines.append(f"  {_label(node)}" + (f" <- {', '.join(reads)}" if reads else ""))
    return "\n".join(lines)


def as_mermaid(flow: Dataflow) -> str:
    """A Mermaid flowchart; the streams of a cycle are dotted."""
    cycle = flow.on_cycle()
    lines = ["flowchart LR"]
    for node in flow.nodes.values():
        left, right = SHAPES.get(type(node.element), ("[", "]"))
        lines.append(f'  {node.name}{left}"{_label(node)}"{right}')
    for edge in flow.edges:
        arrow = "-.->" if edge.sender in cycle and edge.receiver in cycle else "-->"
        lines.append(f"  {edge.sender} {arrow}{f'|{edge.key}|' if edge.key else ''} {edge.receiver}")
    return "\n".join(lines)


def _label(node: Node) -> str:
    return f"{node.name}: {type(node.element).__name__} x {node.parallelism}"


def _by(edge: Edge) -> str:
    return f" by {edge.key}" if edge.key else ""
