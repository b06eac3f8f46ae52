"""Plans by internal completeness, by hand: a join needs one of its inputs, and what a task brings decides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import BadInput
from models.fidelity import score
from models.replication.completeness import plan
from models.replication.dynamic_programming import plan as best_fidelity
from models.topology import Partitioning, parse_topology
from tests.unit.models.small_topologies import build, topologies


def joining():
    """Two regions side by side: what a source has is summed up in two ways, and both are joined. One sink has all."""
    join = {"parallelism": 2, "inputs": "correlated", "output_rates": [3, 2]}
    streams = ("A one-to-one P", "A one-to-one Q", "P one-to-one J", "Q one-to-one J", "J merge S")
    return build({"A": [100, 100], "P": 2, "Q": 2, "J": join, "S": 1}, *streams)


HALF_A_TREE = ["A.0", "P.0", "J.0", "S.0"]
ONE_TREE = ["A.0", "P.0", "Q.0", "J.0", "S.0"]
ALL = 609  # tuples that all tasks process: 200 each in A, P and Q, 4 in J, 5 in S


def names(budget):
    topology = joining()
    return topology.names(plan(topology, budget).replicated)


def quality(tasks):
    topology = joining()
    return score(topology, ~topology.mask(tasks))


def test_without_room_for_half_a_tree_nothing_is_replicated():
    assert names(0) == names(3) == []


def test_with_room_for_half_a_tree_it_takes_one_though_nothing_comes_out():
    """Of the better region; its join has one of its two tuples, so that the sink gets half of 3."""
    assert names(4) == HALF_A_TREE
    assert quality(HALF_A_TREE) == (0.0, pytest.approx((100 + 100 + 1 + 1.5) / ALL))


@pytest.mark.parametrize("budget", [5, 6, 7])
def test_the_other_half_brings_100_for_one_task_so_it_is_next(budget):
    """More than 67 a task: another half has three tasks, and processes 202."""
    assert names(budget) == ONE_TREE


def test_with_more_room_it_takes_half_of_the_next_tree():
    """Its join has an output in no case, but it counts half of it."""
    assert set(names(8)) == {*ONE_TREE, "A.1", "P.1", "J.1"}
    topology = joining()
    of_fidelity, ours = (score(topology, ~each(topology, 8).replicated) for each in (best_fidelity, plan))
    assert of_fidelity.internal_completeness == pytest.approx((300 + 2 + 3) / ALL)
    assert ours.internal_completeness == pytest.approx((300 + 2 + 3 + 100 + 100 + 1 + 1) / ALL)
    assert ours.output_fidelity == of_fidelity.output_fidelity == pytest.approx(0.6)


def test_all_tasks_when_the_budget_covers_them():
    assert plan(joining(), 99).replicated.all()


@given(topologies(), st.integers(0, 10))
def test_it_sees_no_joins_and_stays_within_the_budget(topology, budget):
    structured = tuple(s for s in topology.streams if s.partitioning is not Partitioning.FULL)
    documents = [
        {
            "operators": [o.model_dump(mode="json") | change for o in topology.operators],
            "streams": [s.model_dump(mode="json", by_alias=True) for s in structured],
        }
        for change in ({}, {"inputs": "independent"})
    ]
    found, of_unions = (plan(parse_topology(document), budget).replicated for document in documents)
    assert (found == of_unions).all()
    assert found.sum() <= budget
    internal = score(parse_topology(documents[0]), ~found).internal_completeness
    assert (internal > 0) == found.any()


@pytest.mark.parametrize("budget", [-1, 1.5])
def test_a_budget_counts_tasks(budget):
    with pytest.raises(BadInput, match="budget"):
        plan(joining(), budget)


def test_a_full_stream_is_refused():
    topology = build({"A": 2, "B": 2}, "A full B")
    with pytest.raises(BadInput, match=r"A > B\.partitioning: 'full'"):
        plan(topology, 2)
