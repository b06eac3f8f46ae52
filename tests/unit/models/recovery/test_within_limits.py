"""Planners that are stopped: what they have by then, and who helps them out."""

from types import SimpleNamespace

import numpy as np
import pytest

from experiments import waiting
from models.recovery import density_beam as beam
from models.recovery import neighbours
from models.recovery.best_density import best_density, best_density_within
from models.recovery.deadline import OutOfTime
from models.recovery.density_beam import density_beam
from models.recovery.greedy import Candidates, blocks
from models.recovery.pair_bounds import reach
from models.recovery.random_queries import QuerySpec, UniformSharing, random_queries
from models.recovery.within_limits import plan_within

MOST_LOOKS = 5_000


class Looks:
    """A clock that goes on by a second at every look."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        self.now_s += 1.0
        return self.now_s


def sixty(seed=0):
    full = random_queries(QuerySpec(UniformSharing(4), queries=60), np.random.default_rng(seed))
    return full.with_capacity(0.2 * full.capacity)


@pytest.mark.parametrize("seed", range(2))
def test_the_later_best_density_is_stopped_the_better_is_its_plan(monkeypatch, seed):
    problem, expected = sixty(seed), best_density(sixty(seed))
    plans, done, looks = [], False, 0
    while not done:
        monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=Looks()))
        plan, done = best_density_within(problem, looks)
        assert problem.cost(plan.partitions) <= problem.limit
        plans.append(plan)
        looks = looks + 1 + looks // 2
        assert looks < MOST_LOOKS
    priorities = [plan.priority for plan in plans]
    assert priorities == sorted(priorities)
    assert plans[-1].partitions.tolist() == expected.partitions.tolist()
    assert len(set(priorities)) > 1


def test_best_density_without_any_time_has_the_extension_of_nothing():
    problem = sixty()
    plan, done = best_density_within(problem, 0.0)
    assert not done
    assert 0 < plan.priority < best_density(problem).priority


def test_bounds_of_pairs_look_at_the_clock_between_parts_of_the_pairs(monkeypatch):
    problem = sixty()
    of = blocks(problem)
    empty, every = Candidates.empty(of, problem.limit), np.ones((60, 60), dtype=bool)
    looks = {}
    for at_once in (neighbours.AT_ONCE, 50):
        monkeypatch.setattr(neighbours, "AT_ONCE", at_once)
        seen = []
        reach(of, empty, every, lambda seen=seen: seen.append(None))
        looks[at_once] = len(seen)
    assert looks[50] > 2 * looks[1_000_000]

    def stops():
        raise OutOfTime

    with pytest.raises(OutOfTime):
        reach(of, empty, every, stops)


def test_a_best_density_that_is_stopped_is_helped_by_a_quick_planner():
    problem = sixty()
    plan, notes = plan_within(problem, "best-density", 1e-9)
    assert plan.priority >= density_beam(problem).priority > best_density_within(problem, 0.0)[0].priority
    (note,) = notes
    assert note == "the better plan of best-density and density-beam: best-density had not looked at every pair in time"


@pytest.mark.parametrize("planner", ["best-density", "exact"])
def test_without_any_time_the_quick_planner_plans(planner):
    problem = sixty()
    plan, notes = plan_within(problem, planner, 0.0)
    assert plan.partitions.tolist() == density_beam(problem).partitions.tolist()
    assert notes == (f"planner density-beam instead of {planner}: no time is left",)


def test_a_best_density_that_is_done_in_time_is_left_alone():
    problem = sixty()
    plan, notes = plan_within(problem, "best-density", 60.0)
    assert plan.partitions.tolist() == best_density(problem).partitions.tolist()
    assert notes == ()


@pytest.mark.parametrize(("planner", "limit_s"), [("best-density", 1e-9), ("best-density", 0.0), ("exact", 0.0)])
def test_a_planner_whose_time_is_over_does_not_begin_anew_by_way_of_the_quick_one(monkeypatch, planner, limit_s):
    """Without a limit, the quick planner leaves it to `best-density` where its plan may miss the theorem's bound."""
    asked, problem = [], sixty()
    monkeypatch.setattr(beam, "ceiling", lambda of, room: 1e9)
    monkeypatch.setattr(beam, "best_density", lambda given: asked.append(given) or best_density(given))
    plan, notes = plan_within(problem, planner, limit_s)
    assert (asked, len(notes)) == ([], 1)
    assert plan.priority >= density_beam(problem, alone=True).priority
    plan_within(problem, "density-beam", limit_s)
    assert asked == [problem]
