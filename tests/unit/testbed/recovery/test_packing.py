"""Plans of which every partition fits on some worker: one that does not fit hides none that does."""

import numpy as np
import pytest
from scipy import sparse

from models.recovery.best_density import best_density
from models.recovery.problem import RecoveryProblem
from testbed.recovery import packing
from testbed.recovery.packing import packed

ROOM = {"a": 0.6, "b": 0.6}


def restored(*queries, planner=best_density, room=ROOM, left_s=lambda: 1.0):
    """The queries that come back: each is given by its priority and the costs of its partitions, which are its own."""
    costs = [cost for _, *own in queries for cost in own]
    owners = np.repeat(np.arange(len(queries)), [len(own) for _, *own in queries])
    problem = RecoveryProblem(
        failed=np.ones(len(costs), dtype=bool),
        queries=tuple(f"Q{number}" for number in range(len(queries))),
        needs=sparse.csr_array(owners == np.arange(len(queries))[:, None]).astype(float),
        costs=np.array(costs),
        priorities=np.array([priority for priority, *_ in queries], dtype=float),
        feeds=sparse.csr_array((len(costs), len(costs))),
        capacity=sum(room.values()),
    )
    found = packed(problem, room, dict(enumerate(costs)), planner, left_s)
    for worker, most in room.items():
        assert sum(costs[number] for number, at in found.items() if at == worker) <= most * (1 + 1e-6)
    back = problem.recovered(np.isin(np.arange(len(costs)), list(found)))
    return [int(number) for number in np.flatnonzero(back)]


def test_a_query_with_a_partition_that_no_worker_takes_hides_no_other():
    assert restored((1, 0.7), (1, 0.5, 0.5)) == [1]


def test_a_query_whose_partitions_do_not_fit_together_hides_no_other():
    asked = []
    queries = (1, 0.35, 0.35, 0.35), (1, 0.55, 0.55)
    assert restored(*queries, planner=lambda problem: asked.append(problem.queries) or best_density(problem)) == [1]
    assert asked == [("Q0", "Q1"), ("Q1",)]


def test_what_fits_of_a_plan_is_kept_and_the_room_that_is_left_is_filled():
    assert restored((10, 0.4), (10, 0.4), (10, 0.4), (1, 0.2)) == [0, 1, 3]


def test_a_partition_that_no_worker_takes_is_in_no_plan():
    asked = []
    restored((1, 0.7), (1, 0.5, 0.5), planner=lambda problem: asked.append(problem) or best_density(problem))
    assert [problem.queries for problem in asked] == [("Q1",)]
    assert asked[0].costs.tolist() == [0.5, 0.5]
    assert asked[0].failed.tolist() == [False, True, True]


def test_once_the_time_is_over_queries_are_tried_alone():
    asked = []
    queries = (1, 0.35, 0.35, 0.35), (1, 0.55, 0.55)
    planner = lambda problem: asked.append(problem.queries) or best_density(problem)  # noqa: E731
    assert restored(*queries, planner=planner, left_s=lambda: 0.0) == [1]
    assert asked == [("Q0", "Q1")]


def test_after_so_many_plans_queries_are_tried_alone(monkeypatch):
    monkeypatch.setattr(packing, "MOST_PLANS", 1)
    assert restored((1, 0.35, 0.35, 0.35), (1, 0.55, 0.55)) == [1]


def test_partitions_of_a_plan_without_whole_queries_are_placed_as_far_as_they_fit():
    parts = np.array([True, True, True, False, False])
    queries = (1, 0.35, 0.35, 0.35, 0.35), (1, 0.3)
    assert restored(*queries, planner=lambda problem: problem.plan(parts, optimal=False)) == []
    assert restored(*queries) == [1]


def test_a_plan_that_fits_is_carried_out_as_it_is():
    assert restored((1, 0.6), (0, 0.1), planner=lambda problem: problem.plan(np.eye(2, dtype=bool)[0], False)) == [0]


@pytest.mark.parametrize("room", [{"a": 0.6, "b": -0.3}, {"a": 0.6}])
def test_a_worker_that_has_too_much_gets_no_more(room):
    costs = {0: 0.4, 1: 0.2}
    problem = RecoveryProblem(
        np.ones(2, dtype=bool),
        ("Q0", "Q1"),
        sparse.csr_array(np.eye(2)),
        np.array([0.4, 0.2]),
        np.ones(2),
        sparse.csr_array((2, 2)),
        0.6,
    )
    assert packed(problem, room, costs, best_density, lambda: 1.0) == {0: "a", 1: "a"}
