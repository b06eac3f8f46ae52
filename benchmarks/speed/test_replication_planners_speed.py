"""The heuristic planners on topologies of 1,000 tasks, half of them replicated: within seconds.

A plain-Python version of the greedy planner, which scores one failure after the other, stands beside it.
"""

import numpy as np
import pytest

from models.replication import greedy, structure_aware
from models.replication.parts import PartKind
from models.replication.random_topologies import TopologySpec, generate
from models.topology import InputCorrelation, Topology


def large(kind: PartKind, join_share: float) -> Topology:
    """A random topology of ten operators with about a hundred tasks each."""
    return generate(np.random.default_rng(1), TopologySpec((10, 10), (95, 105), kind, join_share=join_share))


def plain_output_fidelity(topology: Topology, failed: set[int]) -> float:
    """Eqs. 1 to 4 of `ppa`, task by task."""
    rates = topology.values("output_rates").tolist()
    complete = [0.0 if task in failed else 1.0 for task in range(len(rates))]
    for operator in topology.operators:
        effective = [(1.0, 0.0)] * operator.parallelism  # of the product, and of the sum weighted by rate
        weights = [0.0] * operator.parallelism
        start = topology.span[operator.name].start
        for stream in topology.inputs_of[operator.name]:
            sources, targets = (ends.tolist() for ends in topology.links(stream))
            fan_out = {source: sources.count(source) for source in set(sources)}
            total, kept = [0.0] * operator.parallelism, [0.0] * operator.parallelism
            for source, target in zip(sources, targets, strict=True):
                rate = rates[source] / fan_out[source]
                total[target - start] += rate
                kept[target - start] += rate * complete[source]
            for i, (product, weighted) in enumerate(effective):
                effective[i] = product * kept[i] / total[i], weighted + kept[i]
                weights[i] += total[i]
        for i, (product, weighted) in enumerate(effective if topology.inputs_of[operator.name] else ()):
            joins = operator.inputs is InputCorrelation.CORRELATED
            complete[start + i] *= product if joins else weighted / weights[i]
    sinks = [i for o in topology.sinks for i in range(topology.span[o.name].start, topology.span[o.name].stop)]
    return sum(rates[i] * complete[i] for i in sinks) / sum(rates[i] for i in sinks)


def plain_greedy(topology: Topology, budget: int) -> list[int]:
    """The tasks that do most harm when they fail alone."""
    alone = [round(plain_output_fidelity(topology, {task}), 12) for task in range(len(topology.tasks))]
    return sorted(range(len(alone)), key=alone.__getitem__)[:budget]


@pytest.mark.parametrize("kind", list(PartKind))
@pytest.mark.parametrize("join_share", [0.0, 0.5])
def test_structure_aware_plan_of_1000_tasks(benchmark, kind, join_share):
    topology = large(kind, join_share)
    budget = len(topology.tasks) // 2
    found = benchmark.pedantic(structure_aware.plan, (topology, budget), rounds=3)
    assert 0 < found.replicated.sum() <= budget


def test_greedy_plan_of_1000_tasks(benchmark):
    topology = large(PartKind.STRUCTURED, 0.5)
    found = benchmark(greedy.plan, topology, 500)
    assert found.replicated.sum() == 500


def test_greedy_plan_of_1000_tasks_in_plain_python(benchmark):
    topology = large(PartKind.STRUCTURED, 0.5)
    found = benchmark.pedantic(plain_greedy, (topology, 500), rounds=1)
    assert sorted(found) == np.flatnonzero(greedy.plan(topology, 500).replicated).tolist()
