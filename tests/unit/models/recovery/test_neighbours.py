"""What two plans leave of the queries between them, against the same in sets and loops."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from models.recovery import neighbours
from models.recovery.greedy import CLOSED, Candidates, blocks
from models.recovery.neighbours import patterns
from models.recovery.pair_bounds import reach
from models.recovery.random_queries import QuerySpec, UniformSharing, random_queries


def some_plans(seed):
    """A plan that recovers some queries of a random problem, and plans that recover up to three more each."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 30))
    of = blocks(random_queries(QuerySpec(UniformSharing(6), queries=size, most=int(rng.integers(3, 20))), rng))
    base = Candidates.empty(of, 1e9)
    for query in rng.integers(0, size, rng.integers(0, 3)):
        base.take(np.array([0]), np.array([query]))
    rows = base.at(np.zeros(12, dtype=int))
    for _ in range(3):
        some = np.flatnonzero(rng.random(12) < 0.7)
        rows.take(some, rng.integers(0, size, some.size))
    return of, base, rows


def plain(of, base, rows, most):
    """The two rows and what they leave, once for each query that each of them lowers and that both together leave."""
    found = Counter()
    had, held = set(np.flatnonzero(base.recovered[0])), [set(np.flatnonzero(row)) for row in rows.recovered]
    for query, needed in enumerate(of.needs):
        lacks = set(needed.tolist()) - had
        for one, other in combinations(range(len(held)), 2):
            by_one, by_other = lacks & held[one], lacks & held[other]
            if by_one - by_other and by_other - by_one and by_one != lacks != by_other:
                left = of.costs[sorted(lacks - by_one - by_other)].sum()
                if left <= most[query]:
                    found[one, other, left] += 1
    return found


@pytest.mark.parametrize("at_once", [1, 50, neighbours.AT_ONCE])
def test_what_every_two_plans_leave_of_the_queries_that_both_lower(monkeypatch, at_once):
    monkeypatch.setattr(neighbours, "AT_ONCE", at_once)
    seen = 0
    for seed in range(40):
        of, base, rows = some_plans(seed)
        added = sparse.csr_array((rows.recovered & ~base.recovered)[:, :-1].astype(float))
        most = np.random.default_rng(seed).integers(0, 30, of.priorities.size) + 0.5
        shared = patterns(of, base, rows, added)
        found = Counter()
        for one, other, left in shared.together(of.row_costs, base.cost[0], most):
            for ends in zip(one.tolist(), other.tolist(), np.round(left).tolist(), strict=True):
                found[min(ends[:2]), max(ends[:2]), ends[2]] += 1
        assert found == plain(of, base, rows, most)
        seen += found.total()
    assert seen > 1000


def test_a_plan_that_adds_nothing_is_next_to_no_query():
    of, base, _ = some_plans(0)
    shared = patterns(of, base, base, sparse.csr_array((1, of.count)))
    assert shared.query.size == 0
    assert all(one.size == 0 for one, _, _ in shared.together(of.row_costs, base.cost[0], base.cost[0]))


@pytest.mark.parametrize("seed", range(10))
def test_what_is_kept_of_every_query_is_what_its_blocks_add_up_to(seed):
    of, _, rows = some_plans(seed)
    for recovered, costs, densities, value in zip(rows.recovered, rows.cost, rows.density, rows.value, strict=True):
        lacking = [sorted({*needed.tolist()} - {*np.flatnonzero(recovered).tolist()}) for needed in of.needs]
        assert costs.tolist() == [of.costs[missing].sum() for missing in lacking]
        assert [density == CLOSED for density in densities] == [not missing for missing in lacking]
        assert value == sum(p for p, missing in zip(of.priorities, lacking, strict=True) if not missing)


@pytest.mark.parametrize("seed", [2, 11, 21, 22])
def test_a_query_that_fits_only_beside_two_others_is_within_their_reach(seed):
    rng = np.random.default_rng(seed)
    full = random_queries(QuerySpec(UniformSharing(6), queries=12, most=6), rng)
    problem = full.with_capacity(rng.uniform(0.2, 0.9) * full.capacity)
    of = blocks(problem)
    found = reach(of, Candidates.empty(of, problem.limit), np.ones((12, 12), dtype=bool))
    one, other = np.nonzero((found.bound >= 0) & (found.bound < np.inf))
    for i, j in zip(one, other, strict=True):
        reached, _ = found.starts[found.number[i, j]].pairs(np.array([i]), np.array([j])).best()
        assert reached <= found.bound[i, j]
