"""The plan of the highest internal completeness, by hand and against every plan one by one."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import BadInput
from models.fidelity import score
from models.replication import completeness
from models.replication.completeness import plan
from models.replication.dynamic_programming import plan as best_fidelity
from tests.unit.models.small_topologies import build, topologies


def joining():
    """Two regions side by side: what a source has is summed up in two ways, and both are joined. One sink has all."""
    join = {"parallelism": 2, "inputs": "correlated", "output_rates": [3, 2]}
    streams = ("A one-to-one P", "A one-to-one Q", "P one-to-one J", "Q one-to-one J", "J merge S")
    return build({"A": [100, 100], "P": 2, "Q": 2, "J": join, "S": 1}, *streams)


ONE_TREE = ["A.0", "P.0", "Q.0", "J.0", "S.0"]


def names(budget):
    topology = joining()
    return topology.names(plan(topology, budget).replicated)


def test_without_room_for_a_whole_tree_nothing_is_replicated():
    assert names(0) == names(4) == []


def test_with_room_for_one_tree_it_is_the_best_one():
    assert names(5) == ONE_TREE


def test_with_more_room_it_takes_tasks_that_no_output_comes_of():
    """They process nearly as much as a second tree, which has one task more than there is room for."""
    assert set(names(8)) == {*ONE_TREE, "A.1", "P.1", "Q.1"}
    topology = joining()
    of_fidelity, ours = (score(topology, ~each(topology, 8).replicated) for each in (best_fidelity, plan))
    assert ours.internal_completeness > of_fidelity.internal_completeness + 0.4
    assert ours.output_fidelity == of_fidelity.output_fidelity == pytest.approx(0.6)


def test_all_tasks_when_the_budget_covers_them():
    assert plan(joining(), 99).replicated.all()


@given(topologies(), st.integers(0, 10))
def test_no_plan_with_output_has_more(topology, budget):
    found = plan(topology, budget).replicated
    size = min(budget, len(topology.tasks))
    of_all = [np.isin(np.arange(len(topology.tasks)), each) for each in combinations(range(len(topology.tasks)), size)]
    scores = [score(topology, ~each) for each in of_all]
    best = max((each.internal_completeness for each in scores if each.output_fidelity > 0), default=None)
    if best is None:
        assert not found.any()
    else:
        assert found.sum() == size
        assert score(topology, ~found).output_fidelity > 0
        assert score(topology, ~found).internal_completeness == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("budget", [-1, 1.5])
def test_a_budget_counts_tasks(budget):
    with pytest.raises(BadInput, match="budget"):
        plan(joining(), budget)


def test_too_many_plans_are_refused(monkeypatch):
    monkeypatch.setattr(completeness, "MOST_PLANS", 100)
    assert plan(joining(), 7).replicated.sum() == 7
    with pytest.raises(BadInput, match="126 plans of 5 of 9 tasks"):
        plan(joining(), 5)
