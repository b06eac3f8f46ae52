"""Branches of a topology that work without each other, for budgets that are too small for all operators.

An MC-tree takes all inputs of a join, but only one of an operator with independent inputs, and it ends at one sink
(`ppa`, definition 1). So a budget below the number of operators may still buy MC-trees, along some of the branches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from models.fidelity import Scorer, worst_case
from models.replication.ties import first_highest
from models.topology import InputCorrelation, Topology

Operators = frozenset[str]


def affordable(topology: Topology, budget: int) -> Operators:
    """At most `budget` operators, whole branches only; none if no MC-tree has that few.

    All operators where the budget reaches them. Else one branch after the other is given up: always the one that costs
    the least output fidelity for each operator saved, of those after which an MC-tree can still be had.
    """
    kept = frozenset(topology.operator)
    if _fewest(topology, kept) > budget:
        return frozenset()
    scorer = Scorer(topology)
    while len(kept) > budget:
        options = [option for option in _without_a_branch(topology, kept) if _fewest(topology, option) <= budget]
        fidelity = scorer.output_fidelity(worst_case(np.stack([_tasks(topology, o) for o in (kept, *options)])))
        saved = np.array([len(kept) - len(option) for option in options])
        kept = options[first_highest(saved / np.maximum(fidelity[0] - fidelity[1:], 1e-300))]
    return kept


def _fewest(topology: Topology, kept: Operators) -> int:
    """How many operators the smallest MC-tree has; one more than there are if there is none.

    Exact where no operator has several output streams.
    """
    smallest: dict[str, Operators] = {}
    for operator in topology.operators:
        inputs = [s.source for s in topology.inputs_of[operator.name]]
        ready = [smallest[name] for name in inputs if name in smallest]
        if operator.name not in kept or not _sustained(operator.inputs, len(ready), len(inputs)):
            continue
        if operator.inputs is InputCorrelation.INDEPENDENT:
            ready = sorted(ready, key=len)[:1]
        smallest[operator.name] = frozenset([operator.name]).union(*ready)
    return min(
        (len(smallest[o.name]) for o in topology.sinks if o.name in smallest), default=len(topology.operators) + 1
    )


def _sustained(kind: InputCorrelation, ready: int, inputs: int) -> bool:
    """Whether an operator has output when that many of its input streams have."""
    return ready == inputs or (kind is InputCorrelation.INDEPENDENT and ready > 0)


def _without_a_branch(topology: Topology, kept: Operators) -> Iterator[Operators]:
    """What is left of the kept operators without one of them, for each that some other branch can stand in for."""
    sinks = [o.name for o in topology.sinks if o.name in kept]
    heads = dict.fromkeys(sinks if len(sinks) > 1 else [])
    for operator in topology.operators:
        inputs = [s.source for s in topology.inputs_of[operator.name] if s.source in kept]
        if operator.name in kept and operator.inputs is InputCorrelation.INDEPENDENT and len(inputs) > 1:
            heads |= dict.fromkeys(inputs)
    for head in heads:
        yield _working(topology, kept - {head})


def _working(topology: Topology, kept: Operators) -> Operators:
    """The kept operators that have output, and whose output reaches a sink."""
    fed: set[str] = set()
    for operator in topology.operators:
        inputs = [s.source for s in topology.inputs_of[operator.name]]
        if operator.name in kept and _sustained(operator.inputs, sum(name in fed for name in inputs), len(inputs)):
            fed.add(operator.name)
    wanted = {operator.name for operator in topology.sinks}
    for operator in reversed(topology.operators):
        if operator.name in wanted & fed:
            wanted |= {s.source for s in topology.inputs_of[operator.name]}
    return frozenset(fed & wanted)


def _tasks(topology: Topology, operators: Operators) -> npt.NDArray[np.bool_]:
    return np.repeat([o.name in operators for o in topology.operators], [o.parallelism for o in topology.operators])
