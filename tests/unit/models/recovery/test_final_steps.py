"""BestDensity in less time: what it leaves out of its work does not change what it plans."""

from itertools import chain

import numpy as np
import pytest

from models.recovery import final_steps
from models.recovery.best_density import best_density, ceiling, worth_of_the_rest
from models.recovery.final_steps import FinalSteps
from models.recovery.greedy import Candidates, blocks
from models.recovery.pair_bounds import reach
from models.recovery.random_queries import Priorities, QuerySpec, UniformSharing, ZipfSharing, random_queries


def scarce(seed, queries):
    """Random queries, of which the capacity is enough for a few."""
    rng = np.random.default_rng(seed)
    sharing = [UniformSharing(4), UniformSharing(9), ZipfSharing(0.5, 3 * queries)][seed % 3]
    full = random_queries(QuerySpec(sharing, queries=queries, most=6, priorities=list(Priorities)[seed % 2]), rng)
    return full.with_capacity(rng.uniform(0.15, 0.4) * full.capacity)


def late_starts(problem):
    """Starts on the way of extensions, each with the pairs of queries that get there."""
    of = blocks(problem)
    empty = Candidates.empty(of, problem.limit)
    found = reach(of, empty, np.ones((len(problem.queries),) * 2, dtype=bool))
    there = np.triu(found.bound < np.inf)
    for number, start in enumerate(found.starts[1:], 1):
        one, other = np.nonzero(there & (found.number == number))
        if one.size:
            yield start, one, other


def alone(start, one, other):
    """What each pair reaches, extended by itself."""
    return np.array([start.pairs(one[[i]], other[[i]]).best()[0] for i in range(one.size)])


def test_pairs_reach_what_their_extensions_are_worth(monkeypatch):
    monkeypatch.setattr(final_steps, "CROWD", 1)
    pairs = 0
    for start, one, other in chain.from_iterable(late_starts(scarce(seed, 20)) for seed in range(8)):
        expected, steps = alone(start, one, other), FinalSteps(start)
        assert steps.reached(one, other, -np.inf) == pytest.approx(expected, rel=1e-14)
        floor = np.median(expected)
        found = steps.reached(one, other, floor)
        assert found[expected > floor] == pytest.approx(expected[expected > floor], rel=1e-14)
        assert np.all(found[expected <= floor] <= floor)
        pairs += one.size
    assert pairs > 200


def test_many_queries_that_may_fit_are_left_to_the_extensions(monkeypatch):
    monkeypatch.setattr(final_steps, "CROWD", 0)
    start, one, other = next(late_starts(scarce(0, 24)))
    assert FinalSteps(start).reached(one, other, -np.inf) is None


@pytest.mark.parametrize("seed", range(6))
def test_a_plan_is_the_one_of_extensions_that_look_at_all_queries(monkeypatch, seed):
    problem = scarce(seed, 120)
    found, looked_at = [], FinalSteps.reached

    def counted(*arguments):
        reached = looked_at(*arguments)
        found.append(reached is not None)
        return reached

    monkeypatch.setattr(FinalSteps, "reached", counted)
    plan = best_density(problem)
    monkeypatch.setattr(FinalSteps, "reached", lambda *_: None)
    expected = best_density(problem)
    assert plan.partitions.tolist() == expected.partitions.tolist()
    assert plan.priority == expected.priority
    assert any(found)


@pytest.mark.parametrize("seed", range(6))
def test_part_of_a_further_query_is_within_the_linear_relaxation(seed):
    problem = scarce(seed, 24)
    of = blocks(problem)
    value, recovered = Candidates.empty(of, problem.limit).best()
    assert 0 < worth_of_the_rest(of, problem.limit, recovered) <= ceiling(of, problem.limit) - value
