"""Query partitions and plans, derived by hand; the paper's generator."""

import math

import numpy as np
import pytest

from experiments.errors import BadInput
from models.recovery.problem import recovery_problem
from models.recovery.random_queries import Priorities, QuerySpec, UniformSharing, ZipfSharing, random_queries
from models.topology import parse_topology


def topology(*, output=False):
    return parse_topology(
        {
            "operators": [
                {"name": "S", "parallelism": 2, "costs": [1, 2]},
                {"name": "A", "parallelism": 4, "costs": [3, 4, 5, 6], "output": output, "priorities": [7, 8, 9, 10]},
                {"name": "B", "parallelism": 2, "priorities": [2, 3]},
                {"name": "C", "parallelism": 2, "priorities": [4, 5]},
            ],
            "streams": [
                {"from": "S", "to": "A", "partitioning": "split"},
                {"from": "A", "to": "B", "partitioning": "merge"},
                {"from": "A", "to": "C", "partitioning": "full"},
            ],
        }
    )


def needed(problem):
    names = np.array([f"{i}" for i in np.flatnonzero(problem.failed)])
    return {q: set(names[row > 0]) for q, row in zip(problem.queries, problem.needs.toarray(), strict=True)}


def test_a_query_is_everything_upstream_of_its_output_partition():
    problem = recovery_problem(topology(), "all", 3)  # tasks: S 0 1, A 2-5, B 6 7, C 8 9
    assert needed(problem) == {
        "B.0": {"0", "2", "3", "6"},
        "B.1": {"1", "4", "5", "7"},
        "C.0": {"0", "1", "2", "3", "4", "5", "8"},
        "C.1": {"0", "1", "2", "3", "4", "5", "9"},
    }
    assert problem.costs.tolist() == [1, 2, 3, 4, 5, 6, 1, 1, 1, 1]
    assert problem.priorities.tolist() == [2, 3, 4, 5]
    assert problem.shares.tolist() == [3, 3, 3, 3, 3, 3, 1, 1, 1, 1]


def test_only_failed_partitions_cost_and_only_hit_queries_have_failed():
    problem = recovery_problem(topology(output=True), ["A.1", "B.1"], 3)
    assert needed(problem) == {"A.1": {"3"}, "B.0": {"3"}, "B.1": {"7"}, "C.0": {"3"}, "C.1": {"3"}}
    assert problem.costs.tolist() == [4, 1]
    assert problem.priorities.tolist() == [8, 2, 3, 4, 5]
    nothing = recovery_problem(topology(), [], 3)
    assert nothing.queries == ()


def test_a_plan_counts_every_query_that_it_happens_to_complete():
    problem = recovery_problem(topology(output=True), ["A.1", "B.1"], 4)
    plan = problem.plan(np.array([True, False]), optimal=False)
    assert plan.queries == ("A.1", "B.0", "C.0", "C.1")
    assert plan.priority == 8 + 2 + 4 + 5
    left = problem.after(plan)
    assert left.queries == ("B.1",)
    assert left.capacity == 0
    assert np.flatnonzero(left.failed).tolist() == [7]


@pytest.mark.parametrize("capacity", [-1.0, math.nan, math.inf])
def test_a_capacity_is_a_finite_amount(capacity):
    with pytest.raises(BadInput, match="capacity"):
        recovery_problem(topology(), "all", capacity)
    with pytest.raises(BadInput, match="capacity"):
        recovery_problem(topology(), "all", 1).with_capacity(capacity)


def test_an_unknown_task_is_named():
    with pytest.raises(BadInput, match=r"failed: 'A\.9'"):
        recovery_problem(topology(), ["A.9"], 1)


def test_a_vector_of_failed_tasks_is_as_good_as_their_names():
    mask = topology().mask(["A.1", "B.1"])
    assert needed(recovery_problem(topology(), mask, 3)) == needed(recovery_problem(topology(), ["A.1", "B.1"], 3))


@pytest.mark.parametrize(
    "failed",
    [np.ones(9, dtype=bool), np.ones((10, 1), dtype=bool), np.ones(10), np.array(["A.1"]), "A.1", "A.1,B.1", ""],
)
def test_what_names_no_failed_tasks_is_refused(failed):
    with pytest.raises(BadInput, match="failed"):
        recovery_problem(topology(), failed, 1)


def test_costs_that_sum_to_the_capacity_fit_whatever_the_rounding():
    assert 0.1 + 0.2 > 0.3
    assert recovery_problem(topology(), "all", 0.3).limit > 0.1 + 0.2


@pytest.mark.parametrize("most", [1, 3, 6])
def test_uniform_sharing_is_within_its_bound_and_uses_it(most):
    problem = random_queries(QuerySpec(UniformSharing(most), queries=200), np.random.default_rng(1))
    sizes = problem.needs.sum(axis=1)
    assert set(sizes) == set(range(3, 10))
    assert problem.shares.max() == most
    shared = problem.shares[:-200]
    counts = np.bincount(shared, minlength=most + 1)[1:]
    # the last partitions go to the few queries that still miss some, so leave twice the usual five standard errors
    assert np.all(np.abs(counts - shared.size / most) < 10 * math.sqrt(shared.size / most) + most)


def test_the_skew_of_zipf_sharing_may_be_a_whole_number():
    sizes, rng = np.full(50, 2), np.random.default_rng(1)
    assert (ZipfSharing(2, 20).draw(sizes, rng).sum(axis=1) == 2).all()


@pytest.mark.extended
def test_zipf_sharing_falls_with_the_rank():
    spec = QuerySpec(ZipfSharing(0.5, 100), queries=4000, fewest=3, most=3)
    shares = random_queries(spec, np.random.default_rng(2)).shares[:100]
    ranks = np.arange(1, 101)
    expected = 8000 * ranks**-0.5 / (ranks**-0.5).sum()
    far = ranks > 10  # two draws without replacement bend the law at the top
    assert np.all(np.abs(shares - expected)[far] < 6 * np.sqrt(expected[far]))


def test_priorities_grow_linearly_with_the_workload():
    spec = QuerySpec(UniformSharing(3), priorities=Priorities.WORKLOAD)
    problem = random_queries(spec, np.random.default_rng(3))
    work = problem.needs @ problem.costs
    assert problem.priorities.min() == 1
    assert problem.priorities.max() == pytest.approx(10)
    assert np.corrcoef(work, problem.priorities)[0, 1] == pytest.approx(1)


def test_the_same_seed_draws_the_same_queries():
    spec = QuerySpec(UniformSharing(4))
    one, other = (random_queries(spec, np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(one.needs.toarray(), other.needs.toarray())
    assert np.array_equal(one.costs, other.costs)
    assert np.array_equal(one.priorities, other.priorities)
    assert set(one.priorities) <= set(range(1, 11))


def test_bad_specs_are_named():
    with pytest.raises(BadInput, match="most"):
        QuerySpec(UniformSharing(3), fewest=4, most=3)
    with pytest.raises(BadInput, match=r"sharing\.most"):
        UniformSharing(0)
    with pytest.raises(BadInput, match=r"sharing\.skew"):
        ZipfSharing(math.nan, 3)
