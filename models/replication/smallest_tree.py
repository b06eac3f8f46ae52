"""A smallest MC-tree, where the tasks that several of its branches lead to are counted once.

Not in the `ppa` paper, whose MC-trees (definition 1) end in separate branches: to find a smallest one in any DAG of
joins is NP-hard. So this module goes through the operators from the sinks up, with the sets of tasks that are still
needed, and keeps at most `MOST_KEPT` of these sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.replication.mc_trees import upstream_by_task
from models.topology import InputCorrelation, Partitioning, Topology, TopologyOperator, TopologyStream

MOST_KEPT = 100  # sets of needed tasks, of each operator on the way; a tree is missed only where there are more

Tasks = frozenset[int]


class _Partial(NamedTuple):
    """A tree as far as it has grown; in `needed`, -1 - n stands for any one task of operator n."""

    needed: Tasks
    taken: Tasks

    @property
    def size(self) -> int:
        """The number of tasks that the tree is known to need."""
        return len(self.needed) + len(self.taken)


def smallest_mc_tree(topology: Topology, most_tasks: int) -> npt.NDArray[np.bool_]:
    """The tasks of an MC-tree with the fewest, over all tasks; none where even that one has more than `most_tasks`.

    Exact unless more than `MOST_KEPT` sets of needed tasks are as promising; then it may take more tasks than
    necessary, or be missed. Ties go to the tasks of higher rate.
    """
    search = _Search(topology, most_tasks)
    found = search.cheapest(_Partial(frozenset([search.any_of[sink.name]]), frozenset()) for sink in topology.sinks)
    for operator in reversed(topology.operators):
        found = search.past(operator, found)
    replicated = np.zeros(len(topology.tasks), dtype=bool)
    for tree in found[:1]:
        replicated[list(tree.taken)] = True
    return replicated


class _Search:
    def __init__(self, topology: Topology, most_tasks: int) -> None:
        self._topology, self._most_tasks = topology, most_tasks
        self._rates = topology.values("output_rates")
        self.any_of = {operator.name: -1 - n for n, operator in enumerate(topology.operators)}
        self._spans = list(topology.span.values())
        self._heaviest = {name: self._ranked(range(span.start, span.stop)) for name, span in topology.span.items()}
        self._any_like = [self.any_of[operator.name] for operator in topology.operators for _ in operator.output_rates]

    def past(self, operator: TopologyOperator, trees: Iterable[_Partial]) -> list[_Partial]:
        """The trees once none of them needs a task of the operator any more, whose downstream ones are passed."""
        span, inputs = self._topology.span[operator.name], self._inputs(operator)
        passed: list[_Partial] = []
        growing = self.cheapest(chosen for tree in trees for chosen in self._with_a_task(operator, tree))
        while growing:
            grown = []
            for tree in growing:
                if own := [task for task in tree.needed if span.start <= task < span.stop]:
                    grown += self._with_inputs(tree, min(own), inputs[min(own) - span.start])
                else:
                    passed.append(tree)
            growing = self.cheapest(grown)
        return self.cheapest(passed)

    def cheapest(self, trees: Iterable[_Partial]) -> list[_Partial]:
        """The smallest ones that fit, the smallest first, and of those that need the same tasks one."""
        distinct: dict[Tasks, _Partial] = {}
        for tree in trees:
            known = distinct.get(tree.needed)
            if tree.size <= self._most_tasks and (known is None or tree.size < known.size):
                distinct[tree.needed] = tree
        return sorted(distinct.values(), key=lambda tree: tree.size)[:MOST_KEPT]

    def _with_a_task(self, operator: TopologyOperator, tree: _Partial) -> Iterator[_Partial]:
        """Names the task where any one of the operator's will do: each in turn."""
        if self.any_of[operator.name] in tree.needed:
            yield from (self._needing(tree, task) for task in self._heaviest[operator.name])
        else:
            yield tree

    def _needing(self, tree: _Partial, choice: int) -> _Partial:
        """With one more task that it needs; where any one of an operator's will do, one that it needs anyway."""
        if choice < 0:
            span = self._spans[-1 - choice]
            enough = any(span.start <= task < span.stop for task in tree.needed)
            return tree if enough else tree._replace(needed=tree.needed | {choice})
        return tree._replace(needed=(tree.needed - {self._any_like[choice]}) | {choice})

    def _with_inputs(self, tree: _Partial, task: int, streams: Sequence[Sequence[int]]) -> list[_Partial]:
        """Takes a needed task, in each way to choose one of every group of tasks that it needs one of."""
        found = [_Partial(tree.needed - {task}, tree.taken | {task})]
        for upstream in streams:
            found = self.cheapest(self._needing(t, choice) for t in found for choice in upstream)
        return found

    def _inputs(self, operator: TopologyOperator) -> list[list[list[int]]]:
        """The groups of upstream tasks that each task of an operator needs one of."""
        streams = [self._upstream(stream) for stream in self._topology.inputs_of[operator.name]]
        groups = [list(each) for each in zip(*streams, strict=True)] if streams else [[]] * operator.parallelism
        if operator.inputs is InputCorrelation.CORRELATED:
            return groups
        return [[[task for stream in each for task in stream]] if each else [] for each in groups]

    def _upstream(self, stream: TopologyStream) -> list[list[int]]:
        if stream.partitioning is Partitioning.FULL:
            return [[self.any_of[stream.source]]] * self._topology.operator[stream.target].parallelism
        return [self._ranked(each) for each in upstream_by_task(self._topology, stream)]

    def _ranked(self, tasks: Sequence[int]) -> list[int]:
        """The highest rates first, and no more than could be kept."""
        return sorted(tasks, key=lambda task: -self._rates[task])[:MOST_KEPT]
