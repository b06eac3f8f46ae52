"""The greedy planner against its ranking by hand, and against one score at a time."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.errors import BadInput
from models.fidelity import score
from models.replication.greedy import plan
from models.replication.parts import PartKind
from models.replication.random_topologies import TopologySpec, generate
from models.topology import parse_topology
from tests.unit.models.small_topologies import build


def merging():
    """If only one task fails: OF 1/4 without O1.0, 3/4 without O1.1, 0 without O2.0."""
    return parse_topology(
        {
            "operators": [
                {"name": "O1", "parallelism": 2, "output_rates": [3, 1]},
                {"name": "O2", "parallelism": 1, "output_rates": [4]},
            ],
            "streams": [{"from": "O1", "to": "O2", "partitioning": "merge"}],
        }
    )


@pytest.mark.parametrize(
    ("budget", "tasks"),
    [(0, []), (1, ["O2.0"]), (2, ["O1.0", "O2.0"]), (3, ["O1.0", "O1.1", "O2.0"]), (9, ["O1.0", "O1.1", "O2.0"])],
)
def test_takes_the_tasks_whose_failure_alone_hurts_most(budget, tasks):
    topology = merging()
    found = plan(topology, budget)
    assert topology.names(found.replicated) == tasks
    assert not found.optimal


def test_is_blind_to_mc_trees():
    """With two tasks it takes both of the sink, whose inputs are lost: nothing is left of the output."""
    topology = parse_topology(
        {
            "operators": [{"name": "O1", "parallelism": 3}, {"name": "O2", "parallelism": 2}],
            "streams": [{"from": "O1", "to": "O2", "partitioning": "full"}],
        }
    )
    found = plan(topology, 2)
    assert topology.names(found.replicated) == ["O2.0", "O2.1"]
    assert score(topology, ~found.replicated).output_fidelity == 0


def test_ties_go_to_the_earlier_task():
    """Ten tasks lose 1/5 each, which rounds in one way upstream and in another downstream."""
    topology = parse_topology(
        {
            "operators": [{"name": "O1", "parallelism": 5}, {"name": "O2", "parallelism": 5}],
            "streams": [{"from": "O1", "to": "O2", "partitioning": "full"}],
        }
    )
    for budget in range(11):
        assert np.flatnonzero(plan(topology, budget).replicated).tolist() == list(range(budget))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(PartKind), st.sampled_from([0.0, 0.5]), st.floats(0, 1))
def test_no_task_left_out_hurts_more_than_one_taken(seed, kind, join_share, share):
    topology = generate(np.random.default_rng(seed), TopologySpec(parallelism=(1, 5), kind=kind, join_share=join_share))
    budget = round(share * len(topology.tasks))
    replicated = plan(topology, budget).replicated
    alone = [score(topology, row).output_fidelity for row in np.eye(len(topology.tasks), dtype=bool)]
    assert replicated.sum() == budget
    if 0 < budget < len(topology.tasks):
        assert max(np.array(alone)[replicated]) <= min(np.array(alone)[~replicated]) + 1e-12


def test_memory_does_not_grow_with_the_square_of_the_tasks():
    """Of 6,000 tasks all failures of one task at once would take 36 MB as booleans, and 288 MB scored."""
    topology = build({"A": 3_000, "B": 3_000}, "A one-to-one B")
    tracemalloc.start()
    found = plan(topology, 5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.flatnonzero(found.replicated).tolist() == [0, 1, 2, 3, 4]
    assert peak < 100e6


def test_refuses_a_budget_below_0():
    with pytest.raises(BadInput, match="budget: -1"):
        plan(merging(), -1)
