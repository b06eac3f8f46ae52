"""A dataflow as text."""

from __future__ import annotations

from testbed.core.dataflow.graph import Dataflow, Edge, Node


def as_text(flow: Dataflow) -> str:
    """One line for each operator: what it is, its parallelism, and what it reads."""
    lines = [f"dataflow {flow.name}"]
    for node in flow.nodes.values():
        reads = [f"{edge.sender}{_by(edge)}" for edge in flow.edges if edge.receiver == node.name]
        lines.append(f"  {_label(node)}" + (f" <- {', '.join(reads)}" if reads else ""))
    return "\n".join(lines)


def _label(node: Node) -> str:
    return f"{node.name}: {type(node.element).__name__} x {node.parallelism}"


def _by(edge: Edge) -> str:
    return f" by {edge.key}" if edge.key else ""
