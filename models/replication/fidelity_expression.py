"""Output fidelity of a topology as an expression in the replicated tasks, for planners that search its optimum.

The expression is the completeness 1 - IL of eqs. 1 to 4 of the `ppa` paper, with every task that is not replicated
failed. It is a graph of sums and products with positive weights, so every node is monotone in the replicated tasks.

Tasks with the same neighbours are interchangeable but for their rates: where all streams into and out of an operator
are full, each downstream task sees only the rate that is alive of that operator. So of two such tasks, replicating the
one with the higher rate is never worse. The number of replicated tasks then says which they are: those with the highest
rates. Such an operator is one node, with any parallelism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from models.topology import InputCorrelation, Partitioning, Topology, TopologyOperator, TopologyStream


class NodeKind(Enum):
    """What the value of a node is."""

    TASK = auto()  # that of its one part (1 for a source task) if its task is replicated, else 0
    RANKED = auto()  # the sum of the weights of the tasks that are replicated, which are the first ones
    SUM = auto()  # the weighted sum of its parts
    PRODUCT = auto()  # the product of its parts


@dataclass(frozen=True)
class ExpressionNode:
    """A node of the expression; `parts` are the numbers of earlier nodes, `tasks` indices of the topology's tasks."""

    kind: NodeKind
    parts: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    tasks: tuple[int, ...] = ()


def fidelity_expression(topology: Topology) -> tuple[ExpressionNode, ...]:
    """The nodes, parts before what uses them; the last one is the output fidelity."""
    return tuple(_Builder(topology).nodes)


class _Builder:
    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.nodes: list[ExpressionNode] = []
        self._tasks: dict[str, list[int]] = {}  # the node of each task of an operator
        self._whole: dict[str, int] = {}  # the node of an operator's whole output
        for operator in topology.operators:
            self._add_operator(operator)
        rates = np.array([sum(sink.output_rates) for sink in topology.sinks])
        wholes = [self._output(sink.name) for sink in topology.sinks]
        self._sum(wholes, rates / rates.sum())  # a single sink is the last operator, so its output is the last node

    def _add_operator(self, operator: TopologyOperator) -> None:
        span = self._topology.span[operator.name]
        inputs = self._inputs(operator)
        if not inputs or all(node == inputs[0] for node in inputs):
            outputs = self._topology.outputs_of[operator.name]
            if all(self._is_full(stream) for stream in outputs):
                self._whole[operator.name] = self._ranked(operator, inputs)
                return
        self._tasks[operator.name] = [
            self._add(ExpressionNode(NodeKind.TASK, tuple(inputs[i : i + 1]), tasks=(span.start + i,)))
            for i in range(operator.parallelism)
        ]

    def _ranked(self, operator: TopologyOperator, inputs: list[int]) -> int:
        rates = np.asarray(operator.output_rates)
        order = np.argsort(-rates, kind="stable")
        tasks = tuple((order + self._topology.span[operator.name].start).tolist())
        alive = self._add(
            ExpressionNode(NodeKind.RANKED, weights=tuple((rates[order] / rates.sum()).tolist()), tasks=tasks)
        )
        return self._product([*inputs[:1], alive])

    def _inputs(self, operator: TopologyOperator) -> list[int]:
        """The node of each task's effective input; one node for all of them where they have the same."""
        streams = self._topology.inputs_of[operator.name]
        if not streams:
            return []
        if all(self._is_full(stream) for stream in streams):
            wholes = [self._output(stream.source) for stream in streams]
            rates = [sum(self._topology.operator[stream.source].output_rates) for stream in streams]
            return [self._effective(operator, wholes, rates)] * operator.parallelism
        found = [self._stream_inputs(stream) for stream in streams]
        return [self._effective(operator, *zip(*each, strict=True)) for each in zip(*found, strict=True)]

    def _effective(self, operator: TopologyOperator, nodes: Sequence[int], rates: Sequence[float]) -> int:
        """Eq. 2 and eq. 3 for one task."""
        if operator.inputs is InputCorrelation.CORRELATED:
            return self._product(nodes)
        return self._sum(nodes, np.asarray(rates) / np.sum(rates))

    def _stream_inputs(self, stream: TopologyStream) -> list[tuple[int, float]]:
        """Eq. 1 for each task of the downstream operator: the node of this input stream, and its rate."""
        width = self._topology.operator[stream.target].parallelism
        rates = np.asarray(self._topology.operator[stream.source].output_rates)
        if self._is_full(stream):
            return [(self._output(stream.source), rates.sum() / width)] * width
        sources, targets = self._topology.links(stream)
        sources = sources - self._topology.span[stream.source].start
        targets = targets - self._topology.span[stream.target].start
        substreams = rates[sources] / np.bincount(sources)[sources]
        ends = np.searchsorted(targets, np.arange(1, width))  # links are ordered by downstream task
        found = []
        for mine, own in zip(np.split(sources, ends), np.split(substreams, ends), strict=True):
            nodes = [self._tasks[stream.source][i] for i in mine]
            found.append((self._sum(nodes, own / own.sum()), own.sum()))
        return found

    def _is_full(self, stream: TopologyStream) -> bool:
        """All to all, by name or because there is only one task at an end."""
        ends = (self._topology.operator[name].parallelism for name in (stream.source, stream.target))
        return stream.partitioning is Partitioning.FULL or min(ends) == 1

    def _output(self, operator: str) -> int:
        if operator not in self._whole:
            rates = np.asarray(self._topology.operator[operator].output_rates)
            self._whole[operator] = self._sum(self._tasks[operator], rates / rates.sum())
        return self._whole[operator]

    def _sum(self, parts: Sequence[int], weights: Sequence[float]) -> int:
        if len(parts) == 1:
            return parts[0]
        return self._add(ExpressionNode(NodeKind.SUM, tuple(parts), tuple(float(weight) for weight in weights)))

    def _product(self, parts: Sequence[int]) -> int:
        return parts[0] if len(parts) == 1 else self._add(ExpressionNode(NodeKind.PRODUCT, tuple(parts)))

    def _add(self, node: ExpressionNode) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1
