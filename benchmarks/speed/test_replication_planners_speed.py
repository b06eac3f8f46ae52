"""The heuristic planners on topologies of 1,000 tasks, half of them replicated: within seconds.

A plain-Python version of the greedy planner, which scores one failure after the other, stands beside it.
"""

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.speed.plain_fidelity import plain_output_fidelity
from models.replication import greedy, structure_aware
from models.replication.parts import PartKind
from models.replication.random_topologies import TopologySpec, generate
from models.topology import Topology


def large(kind: PartKind, join_share: float) -> Topology:
    """A random topology of ten operators with about a hundred tasks each."""
    return generate(np.random.default_rng(1), TopologySpec((10, 10), (95, 105), kind, join_share=join_share))


def plain_greedy(topology: Topology, budget: int) -> list[int]:
    """The tasks that do most harm when they fail alone."""
    tasks = range(len(topology.tasks))
    alone = [round(plain_output_fidelity(topology, [each == task for each in tasks]), 12) for task in tasks]
    return sorted(tasks, key=alone.__getitem__)[:budget]


@pytest.mark.parametrize("kind", list(PartKind))
@pytest.mark.parametrize("join_share", [0.0, 0.5])
def test_structure_aware_plan_of_1000_tasks(benchmark: BenchmarkFixture, kind: PartKind, join_share: float) -> None:
    topology = large(kind, join_share)
    budget = len(topology.tasks) // 2
    found = benchmark.pedantic(structure_aware.plan, (topology, budget), rounds=3)
    assert 0 < found.replicated.sum() <= budget


def test_greedy_plan_of_1000_tasks(benchmark: BenchmarkFixture) -> None:
    topology = large(PartKind.STRUCTURED, 0.5)
    found = benchmark(greedy.plan, topology, 500)
    assert found.replicated.sum() == 500


def test_greedy_plan_of_1000_tasks_in_plain_python(benchmark: BenchmarkFixture) -> None:
    topology = large(PartKind.STRUCTURED, 0.5)
    found = benchmark.pedantic(plain_greedy, (topology, 500), rounds=1)
    assert sorted(found) == np.flatnonzero(greedy.plan(topology, 500).replicated).tolist()
