"""The paper's dynamic programming is optimal, with as few tasks as any, and refuses what it cannot finish."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from experiments.errors import BadInput
from models.fidelity import Scorer, worst_case
from models.replication.dynamic_programming import plan
from models.replication.mc_trees import count_mc_trees
from tests.unit.models.small_topologies import build, optima, topologies


def fidelity(topology, replicated):
    return float(Scorer(topology).output_fidelity(worst_case(replicated)))


def test_takes_the_heavier_of_two_chains_then_both():
    topology = build({"A": [1.0, 3.0], "B": [1.0, 3.0]}, "A one-to-one B")
    light, heavy = ["A.0", "B.0"], ["A.1", "B.1"]
    expected = [[], [], heavy, heavy, sorted(light + heavy), sorted(light + heavy)]
    assert [topology.names(plan(topology, budget).replicated) for budget in range(6)] == expected


def test_replicates_both_sides_of_a_join_or_neither():
    topology = build({"A": 1, "B": 1, "J": {"parallelism": 1, "inputs": "correlated"}}, "A full J", "B full J")
    assert [plan(topology, budget).replicated.sum() for budget in range(4)] == [0, 0, 0, 3]


def test_of_two_plans_as_good_the_smaller_one():
    """S reads A, and through C as much from B: either half costs what the budget allows, one of them less."""
    topology = build({"B": 1, "C": 1, "A": 1, "S": 1}, "B full C", "C full S", "A full S")
    assert topology.names(plan(topology, 3).replicated) == ["A.0", "S.0"]


@settings(max_examples=60, deadline=None)
@given(topologies(operators=5, parallelism=3, tasks=10), st.integers(0, 12))
def test_theorem_1(topology, budget):
    """No plan is better, and none as good is smaller."""
    assume(sum(count_mc_trees(topology).values()) <= 300)
    found = plan(topology, budget)
    best = optima(topology)
    reached = fidelity(topology, found.replicated)
    assert found.optimal
    assert found.replicated.sum() <= budget
    assert reached == pytest.approx(best[min(budget, len(topology.tasks))], rel=1e-12)
    assert found.replicated.sum() == np.argmax(best >= reached * (1 - 1e-12))


@settings(max_examples=30, deadline=None)
@given(topologies(operators=5, parallelism=3, tasks=9))
def test_a_budget_for_all_tasks_loses_nothing(topology):
    assume(sum(count_mc_trees(topology).values()) <= 300)
    assert fidelity(topology, plan(topology, len(topology.tasks)).replicated) == pytest.approx(1.0)


def test_refuses_a_negative_budget():
    with pytest.raises(BadInput, match="budget: -1"):
        plan(build({"A": 1}), -1)


def test_refuses_too_many_trees_and_says_what_to_use():
    topology = build({f"O{i}": 20 for i in range(5)}, *(f"O{i} full O{i + 1}" for i in range(4)))
    with pytest.raises(BadInput, match=r"topology: '3200000 MC-trees'.*exact"):
        plan(topology, 5)


def test_refuses_too_many_candidates_and_says_what_to_use():
    topology = build({"A": 2000, "B": 1}, "A merge B")
    with pytest.raises(BadInput, match=r"budget: 1000 .*exact"):
        plan(topology, 1000)
