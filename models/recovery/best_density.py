"""BestDensity: the best of the greedy extensions of every pair of failed queries.

Source: `incremental`, section 5, algorithm 3 and theorem 5.1.
"""

from __future__ import annotations

import numpy as np

from models.recovery.greedy import Blocks, Candidates, Indices, blocks
from models.recovery.pair_bounds import Start, reach, unknown
from models.recovery.problem import Mask, RecoveryPlan, RecoveryProblem

BATCH = 512  # plans extended at once


def best_density(problem: RecoveryProblem) -> RecoveryPlan:
    """Extend every query and every pair of queries that fits by the densest query that still fits; the best result.

    Of queries equally dense the first goes first; of plans of equal priority any may be returned, always the same.
    Pairs that cannot beat the best plan so far are left out (`pair_bounds`), so the priority is that of algorithm 3.
    Memory is some hundred bytes for each pair of failed queries.

    Theorem 5.1, a priority of at least 1 - exp(-1/d) of the optimum with d the largest number of failed queries that
    share a partition, does not hold for the algorithm as printed: of single queries its initial set has only the
    densest one (line 9), so with capacity 10 a query of priority 2 and cost 1 hides one of priority 10 and cost 10.
    Here the initial set has every single query that fits, and the theorem holds. Its proof needs two more repairs:
    the first two queries of the optimum are those of highest priority, not density, and the budget B is what they
    leave; d = 1, for which 1/2 < 1 - 1/e spoils its last step, is the knapsack, where pairs guarantee 2/3.

    Not taken over from the print: CP_n is extended by pair after pair (line 17) instead of begun anew, the index n is
    a query's as well, of equals the last one wins (line 25), and a query that costs nothing has no density.
    """
    if not problem.queries:
        return problem.plan(np.zeros(problem.costs.size, dtype=bool), optimal=False)
    of = blocks(problem)
    empty = Candidates.empty(of, problem.limit)
    value, recovered = empty.at([0]).best()
    initial = _initial(of, empty)
    if value < problem.priorities.sum() and initial.any():
        value, recovered = _over_pairs(of, empty, initial, value, recovered)
    complete = ~np.r_[~recovered, False][of.needs].any(axis=1)
    return problem.plan(problem.union(complete), optimal=False)


def _over_pairs(of: Blocks, empty: Candidates, initial: Mask, value: float, recovered: Mask) -> tuple[float, Mask]:
    """The best extension of the pairs of the initial set, where better than what is there, most promising first."""
    few = np.count_nonzero(initial) <= BATCH
    found = unknown(of, empty) if few else reach(of, empty)
    found.bound[~initial] = -np.inf
    for number in reversed(range(len(found.starts))):
        one, other = np.nonzero((found.number == number) & (found.bound > value))
        order = np.argsort(-found.bound[one, other], kind="stable")
        bounds = found.bound[one[order], other[order]]
        for first in range(0, order.size, BATCH):
            if bounds[first] <= value:
                break
            batch = order[first : first + BATCH]
            value, recovered = _better(found.starts[number], one[batch], other[batch], value, recovered)
    return value, recovered


def _initial(of: Blocks, empty: Candidates) -> Mask:
    """The pairs that fit, each once, without their mirror images; a query with itself stands for the query alone."""
    cost, needs = empty.cost[0], of.incidence()
    union = cost[:, None] + cost - ((needs * of.costs[:-1]) @ needs.T).toarray()
    np.fill_diagonal(union, cost)
    kind, rank = _kinds(of)
    first = rank == 0
    apart = first[:, None] & first
    apart |= (kind[:, None] == kind) & first[:, None] & (rank == 1)
    return np.triu((union <= empty.room) & apart)


def _kinds(of: Blocks) -> tuple[Indices, Indices]:
    """The kind of each query, and its rank within the kind: queries of one kind can change places.

    They share the same blocks with others, have as much for themselves, and are worth the same.
    """
    alone = np.r_[of.sizes == 1, False][of.needs]
    own = np.where(alone, of.row_costs, 0.0).sum(axis=1)
    shared = np.sort(np.where(alone, of.count, of.needs), axis=1)
    members: dict[tuple[float, float, bytes], int] = {}
    kind, rank = np.empty((2, own.size), dtype=int)
    found: list[int] = []
    for i, key in enumerate(zip(own.tolist(), of.priorities.tolist(), map(bytes, shared), strict=True)):
        kind[i] = members.setdefault(key, len(members))
        found.extend([0] * (len(members) - len(found)))
        rank[i] = found[kind[i]]
        found[kind[i]] += 1
    return kind, rank


def _better(start: Start, one: Indices, other: Indices, value: float, recovered: Mask) -> tuple[float, Mask]:
    """The best extension of some pairs if it is worth more than `value`."""
    reached, by = start.pairs(one, other).best(value)
    return (reached, by) if reached > value else (value, recovered)
