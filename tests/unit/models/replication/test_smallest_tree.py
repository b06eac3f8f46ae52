"""The smallest MC-tree: by hand, and as small as any that enumeration finds."""

import numpy as np
import pytest
from hypothesis import given, settings

from models.fidelity import Scorer, worst_case
from models.replication.mc_trees import mc_trees
from models.replication.smallest_tree import smallest_mc_tree
from tests.unit.models.small_topologies import build, topologies

JOIN = {"parallelism": 1, "inputs": "correlated"}


def smallest(topology, most_tasks=100):
    return topology.names(smallest_mc_tree(topology, most_tasks))


def test_takes_the_way_with_fewer_operators_at_the_highest_rates():
    topology = build({"A": 1, "B": 1, "C": [1.0, 5.0], "D": [2.0, 3.0]}, "A full B", "B full D", "C full D")
    assert smallest(topology) == ["C.1", "D.1"]
    assert smallest(topology, 2) == ["C.1", "D.1"]
    assert smallest(topology, 1) == []


def test_branches_of_a_join_agree_on_a_task():
    """By itself each stream would take its heaviest task, A.0 and A.2; B.1 and C.1 read A.1 both."""
    topology = build(
        {"A": [9.0, 1.0, 9.0], "B": [9.0, 1.0, 1.0], "C": [1.0, 1.0, 9.0], "J": JOIN},
        *("A one-to-one B", "A one-to-one C", "B full J", "C full J"),
    )
    assert len(smallest(topology)) == 4
    assert smallest(topology, 3) == []


def test_any_task_will_do_for_a_full_stream_where_another_stream_needs_one():
    """J.0 needs B.0, which reads A.0, and any one of A, whose heaviest is A.1."""
    topology = build(
        {"A": [1.0, 9.0], "B": 2, "J": {"parallelism": 2, "inputs": "correlated", "output_rates": [2.0, 1.0]}},
        *("A one-to-one B", "B one-to-one J", "A full J"),
    )
    assert smallest(topology) == ["A.0", "B.0", "J.0"]


@pytest.mark.extended
@settings(max_examples=200, deadline=None)
@given(topologies(operators=6, parallelism=4, tasks=12, fan_out=3))
def test_is_as_small_as_any_tree(topology):
    fewest = min(map(len, mc_trees(topology)))
    found = smallest_mc_tree(topology, fewest)
    assert found.sum() == fewest
    assert Scorer(topology).output_fidelity(worst_case(found)) > 0
    assert not smallest_mc_tree(topology, fewest - 1).any()


@pytest.mark.extended
@pytest.mark.parametrize("width", [30, 300])
def test_many_trees_of_joins_take_no_longer_than_few(width):
    """(2 width) ** 4 of them, of which the sets of needed tasks that are kept do not depend on the width."""
    sides = [f"S{i}" for i in range(4)]
    topology = build(
        {**dict.fromkeys(sides, width), **{f"M{i}": 2 for i in range(4)}, "J": JOIN},
        *(f"S{i} merge M{i}" for i in range(4)),
        *(f"M{i} full J" for i in range(4)),
    )
    found = smallest_mc_tree(topology, 9)
    assert found.sum() == 9
    assert np.count_nonzero(found[: 4 * width]) == 4
