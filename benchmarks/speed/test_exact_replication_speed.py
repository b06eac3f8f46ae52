"""How fast the best replication plan is proved, on the paper's random topologies; trying every plan beside it.

.venv/bin/pytest benchmarks/speed/test_exact_replication_speed.py
"""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.speed.plain_fidelity import plain_output_fidelity
from models.fidelity import Scorer, worst_case
from models.replication import dynamic_programming, exact
from models.replication.parts import PartKind
from models.replication.random_topologies import TopologySpec, generate
from models.topology import Topology, parse_topology

TOPOLOGIES = 20
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)


def drawn(spec: TopologySpec) -> list[Topology]:
    """The same random topologies on every call."""
    rng = np.random.default_rng(14)
    return [generate(rng, spec) for _ in range(TOPOLOGIES)]


def plans(topologies: list[Topology]) -> list[exact.ExactPlan]:
    """An exact plan of each topology at each budget of `SHARES`."""
    return [exact.plan(topology, int(share * len(topology.tasks))) for topology in topologies for share in SHARES]


@pytest.mark.parametrize("parallelism", [(1, 10), (10, 20)])
@pytest.mark.parametrize("joins", [0.0, 0.5])
@pytest.mark.parametrize("kind", PartKind)
def test_plans_of_20_random_topologies_at_5_budgets(
    benchmark: BenchmarkFixture, kind: PartKind, joins: float, parallelism: tuple[int, int]
) -> None:
    topologies = drawn(TopologySpec(kind=kind, join_share=joins, parallelism=parallelism))
    found = benchmark.pedantic(plans, (topologies,), rounds=2)
    assert all(plan.optimal for plan in found)


def merge_tree() -> Topology:
    """15 tasks that merge pairwise: 8, 4, 2, 1."""
    rates = np.random.default_rng(3).uniform(1, 9, 15).tolist()
    operators, streams = list[dict[str, Any]](), list[dict[str, Any]]()
    for i, width in enumerate((8, 4, 2, 1)):
        own, rates = rates[:width], rates[width:]
        operators.append({"name": f"O{i}", "parallelism": width, "output_rates": own})
        streams += [{"from": f"O{i - 1}", "to": f"O{i}", "partitioning": "merge"}] if i else []
    return parse_topology({"operators": operators, "streams": streams})


def every_plan(topology: Topology, budget: int) -> float:
    """The highest output fidelity, in plain Python: one plan after the other."""
    tasks = range(len(topology.tasks))
    chosen = (set(plan) for plan in combinations(tasks, budget))
    return max(plain_output_fidelity(topology, [task not in plan for task in tasks]) for plan in chosen)


def test_15_tasks(benchmark: BenchmarkFixture) -> None:
    topology = merge_tree()
    found = benchmark(exact.plan, topology, 7)
    assert Scorer(topology).output_fidelity(worst_case(found.replicated)) == pytest.approx(every_plan(topology, 7))


def test_15_tasks_by_the_papers_dynamic_programming(benchmark: BenchmarkFixture) -> None:
    assert benchmark(dynamic_programming.plan, merge_tree(), 7).optimal


def test_15_tasks_in_plain_python(benchmark: BenchmarkFixture) -> None:
    benchmark.pedantic(every_plan, (merge_tree(), 7), rounds=1)
