"""MC-trees: the smallest sets of tasks that give any output when they, and only they, are alive.

Source: `ppa`, definition 1. A task of an operator with independent inputs needs one upstream task of any of its input
streams; a task of an operator with correlated inputs needs one upstream task of each of them.

A tree is a tree of choices, as the paper's word "tree-structured" has it. Where two branches of a join lead back to
one operator (a diamond, which the paper's examples do not have), each branch chooses by itself, even at one and the
same task; so such a tree can hold more tasks than it needs, and two trees can hold the same tasks. In a topology whose
operators each feed one operator every tree is minimal, and no two have the same tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from models.topology import InputCorrelation, Partitioning, Topology, TopologyOperator, TopologyStream

Agenda = tuple[int, "Agenda"] | None  # tasks that still have to choose their inputs, the next one first


def count_mc_trees(topology: Topology) -> dict[str, int]:
    """The number of MC-trees of each sink operator, by its name; exact, and without going through them."""
    counts = [0] * len(topology.tasks)
    for operator in topology.operators:
        streams = [_sums(topology, stream, counts) for stream in topology.inputs_of[operator.name]]
        join = prod if operator.inputs is InputCorrelation.CORRELATED else sum
        own = [join(each) for each in zip(*streams, strict=True)] if streams else [1] * operator.parallelism
        counts[topology.span[operator.name]] = own
    return {sink.name: sum(counts[topology.span[sink.name]]) for sink in topology.sinks}


def mc_trees(topology: Topology) -> Iterator[frozenset[int]]:
    """The MC-trees, sink by sink, as sets of indices over the topology's tasks.

    Lazy: takes memory for one tree at a time, and time in proportion to those that are asked for.
    """
    operators = [operator for operator in topology.operators for _ in range(operator.parallelism)]
    inputs = _upstream_tasks(topology)
    for sink in topology.sinks:
        span = topology.span[sink.name]
        for task in range(span.start, span.stop):
            yield from _trees(task, operators, inputs)


def _trees(
    root: int, operators: Sequence[TopologyOperator], inputs: Sequence[list[Sequence[int]]]
) -> Iterator[frozenset[int]]:
    def choices(agenda: tuple[int, Agenda], tree: frozenset[int]) -> Iterator[tuple[Agenda, frozenset[int]]]:
        task, rest = agenda
        for chosen in _choices(operators[task], inputs[task]):
            longer = rest
            for upstream in chosen:
                longer = (upstream, longer)
            yield longer, tree | {task}

    stack = [choices((root, None), frozenset())]
    while stack:
        if (found := next(stack[-1], None)) is None:
            stack.pop()
            continue
        agenda, tree = found
        if agenda is None:
            yield tree
        else:
            stack.append(choices(agenda, tree))


def _choices(operator: TopologyOperator, streams: list[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """The sets of upstream tasks each of which is enough for a task; an empty one for a source."""
    if not streams:
        yield ()
    elif operator.inputs is InputCorrelation.CORRELATED:
        yield from product(*streams)
    else:
        yield from ((upstream,) for stream in streams for upstream in stream)


def _upstream_tasks(topology: Topology) -> list[list[Sequence[int]]]:
    """The upstream tasks of every task, for each of its input streams."""
    found: list[list[Sequence[int]]] = [[] for _ in topology.tasks]
    for operator in topology.operators:
        span = topology.span[operator.name]
        for stream in topology.inputs_of[operator.name]:
            for inputs, upstream in zip(found[span], upstream_by_task(topology, stream), strict=True):
                inputs.append(upstream)
    return found


def _sums(topology: Topology, stream: TopologyStream, counts: list[int]) -> list[int]:
    """For each task of the downstream operator, the trees that lead to it by one stream."""
    if stream.partitioning is Partitioning.FULL:
        return [sum(counts[topology.span[stream.source]])] * topology.operator[stream.target].parallelism
    return [sum(counts[upstream] for upstream in each) for each in upstream_by_task(topology, stream)]


def upstream_by_task(topology: Topology, stream: TopologyStream) -> list[Sequence[int]]:
    """The upstream tasks on a stream of each task of the downstream operator, as indices over all tasks."""
    width, up = topology.operator[stream.target].parallelism, topology.span[stream.source]
    if stream.partitioning is Partitioning.FULL:
        return [range(up.start, up.stop)] * width
    found: list[list[int]] = [[] for _ in range(width)]
    sources, targets = topology.links(stream)
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        found[target - topology.span[stream.target].start].append(source)
    return list(found)
