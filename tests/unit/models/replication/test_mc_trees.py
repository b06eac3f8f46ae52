"""MC-trees: the paper's example, hand-counted topologies, and that enumeration and count agree."""

import tracemalloc
from itertools import islice

import numpy as np
import pytest
from hypothesis import assume, given, settings

from models.fidelity import Scorer, worst_case
from models.replication.mc_trees import count_mc_trees, mc_trees
from models.topology import InputCorrelation
from tests.unit.models.small_topologies import build, topologies


def figure_1(inputs):
    """The figure is lost; this fits its caption, its two trees, and both of its counts."""
    return build(
        {"O1": 4, "O2": 4, "O3": {"parallelism": 4, "inputs": inputs}, "O4": 2},
        *("O1 one-to-one O3", "O2 one-to-one O3", "O3 full O4"),
    )


@pytest.mark.parametrize(
    ("inputs", "count", "example"),
    [
        (InputCorrelation.INDEPENDENT, 16, ["O1.0", "O3.0", "O4.0"]),
        (InputCorrelation.CORRELATED, 8, ["O1.0", "O2.0", "O3.0", "O4.0"]),
    ],
)
def test_the_papers_example(inputs, count, example):
    topology = figure_1(inputs)
    found = list(mc_trees(topology))
    assert count_mc_trees(topology) == {"O4": count}
    assert len(found) == len(set(found)) == count
    assert frozenset(np.flatnonzero(topology.mask(example)).tolist()) in found


def names(topology):
    return sorted(" ".join(topology.tasks[task] for task in sorted(tree)) for tree in mc_trees(topology))


def test_a_source_that_is_a_sink_is_a_tree_by_itself():
    topology = build({"A": 2})
    assert names(topology) == ["A.0", "A.1"]
    assert count_mc_trees(topology) == {"A": 2}


def test_a_merge_and_a_split():
    topology = build({"A": 3, "B": 2, "C": 3}, "A merge B", "B split C")
    assert names(topology) == ["A.0 B.0 C.0", "A.0 B.0 C.1", "A.1 B.0 C.0", "A.1 B.0 C.1", "A.2 B.1 C.2"]


def test_every_sink_has_trees_of_its_own():
    topology = build({"A": {"parallelism": 2, "output": True}, "B": 3}, "A full B")
    assert count_mc_trees(topology) == {"A": 2, "B": 6}
    assert sum(len(tree) == 1 for tree in mc_trees(topology)) == 2


def test_a_full_chain_has_the_product_of_its_parallelisms():
    topology = build({f"O{i}": 20 for i in range(30)}, *(f"O{i} full O{i + 1}" for i in range(29)))
    assert count_mc_trees(topology) == {"O29": 20**30}


def test_joins_multiply():
    """Every task of J has 3 x 4 trees."""
    topology = build({"A": 3, "B": 4, "J": {"parallelism": 2, "inputs": "correlated"}}, "A full J", "B full J")
    assert count_mc_trees(topology) == {"J": 24}
    assert all(len(tree) == 3 for tree in mc_trees(topology))


def test_the_branches_of_a_join_choose_by_themselves_where_they_meet_again():
    """J needs A directly and through B: two choices each, so four trees, of which two are larger than they need be."""
    topology = build(
        {"A": 2, "B": 1, "J": {"parallelism": 1, "inputs": "correlated"}}, "A full J", "B full J", "A full B"
    )
    assert count_mc_trees(topology) == {"J": 4}
    assert names(topology) == ["A.0 A.1 B.0 J.0", "A.0 A.1 B.0 J.0", "A.0 B.0 J.0", "A.1 B.0 J.0"]


def trees_by_sink(topology):
    """The trees of each sink, as many as are counted; and that there are no more."""
    trees = mc_trees(topology)
    found = {sink: list(islice(trees, count)) for sink, count in count_mc_trees(topology).items()}
    assert next(trees, None) is None
    return found


@settings(max_examples=150, deadline=None)
@given(topologies(operators=6, parallelism=3, tasks=12))
def test_enumeration_and_count_agree_sink_by_sink(topology):
    counts = count_mc_trees(topology)
    assume(sum(counts.values()) <= 5_000)
    for sink, trees in trees_by_sink(topology).items():
        assert len(trees) == counts[sink]
        assert all(any(topology.tasks[task].startswith(f"{sink}.") for task in tree) for tree in trees)


@settings(max_examples=80, deadline=None)
@given(topologies(operators=5, parallelism=3, tasks=9))
def test_a_plan_gives_output_exactly_if_it_holds_a_tree(topology):
    tasks = len(topology.tasks)
    plans = (np.arange(2**tasks)[:, None] >> np.arange(tasks) & 1).astype(bool)
    holds = np.zeros(len(plans), dtype=bool)
    for tree in set(islice(mc_trees(topology), 5_000)):
        holds |= plans[:, sorted(tree)].all(axis=1)
    assert ((Scorer(topology).output_fidelity(worst_case(plans)) > 0) == holds).all()


@settings(max_examples=80, deadline=None)
@given(topologies(operators=6, parallelism=3, tasks=12, fan_out=1))
def test_without_diamonds_trees_are_distinct_and_none_holds_another(topology):
    assume(sum(count_mc_trees(topology).values()) <= 300)
    for trees in trees_by_sink(topology).values():
        assert len(set(trees)) == len(trees)
        assert not any(one < other for one in trees for other in trees)


def test_trees_are_found_lazily():
    """20^30 trees: the first thousand take little memory."""
    topology = build({f"O{i}": 20 for i in range(30)}, *(f"O{i} full O{i + 1}" for i in range(29)))
    tracemalloc.start()
    first = list(islice(mc_trees(topology), 1000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(set(first)) == 1000
    assert peak < 10e6


def test_a_long_chain_needs_no_deep_recursion():
    topology = build({f"O{i}": 1 for i in range(2000)}, *(f"O{i} full O{i + 1}" for i in range(1999)))
    assert [len(tree) for tree in mc_trees(topology)] == [2000]
