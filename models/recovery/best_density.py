"""BestDensity: the best of the greedy extensions of every pair of failed queries.

Source: `incremental`, section 5, algorithm 3 and theorem 5.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from models.recovery.deadline import GoOn, OutOfTime, deadline
from models.recovery.greedy import Blocks, Candidates, Indices, blocks
from models.recovery.neighbours import MARGIN
from models.recovery.pair_bounds import reach, unknown
from models.recovery.problem import Floats, Mask, RecoveryPlan, RecoveryProblem, require_at_most

BATCH = 512  # plans extended at once
MOST_QUERIES = 3000  # about 1 GB


def best_density(problem: RecoveryProblem) -> RecoveryPlan:
    """Extend every query and every pair of queries that fits by the densest query that still fits; the best result.

    If queries are equally dense, the first one goes first. If plans have equal priority, any may be returned, but
    always the same one. Pairs that cannot beat the best plan so far are left out (`pair_bounds`), so the priority is
    that of algorithm 3. Memory is some hundred bytes for each pair of failed queries. Raises `BadInput` for more than
    `MOST_QUERIES`.

    Theorem 5.1, a priority of at least 1 - exp(-1/d) of the optimum with d the largest number of failed queries that
    share a partition, does not hold for the algorithm as printed: of single queries its initial set has only the
    densest one (line 9), so with capacity 10 a query of priority 2 and cost 1 hides one of priority 10 and cost 10.
    Here the initial set has every single query that fits, and the theorem holds. Its proof needs two more repairs:
    the first two queries of the optimum are those of highest priority, not density, and the budget B is what they
    leave; d = 1, for which 1/2 < 1 - 1/e spoils its last step, is the knapsack, where pairs guarantee 2/3.

    These points of the printed algorithm are not taken over: pair after pair extends the same CP_n, which is not
    initialized again (line 17); the index n is used for a query as well; of equally dense queries the last one goes
    first (line 25); and a query that costs nothing has no density.
    """
    return best_density_within(problem, math.inf)[0]


def best_density_within(problem: RecoveryProblem, time_limit_s: float) -> tuple[RecoveryPlan, bool]:
    """`best_density`, or the best plan that it has when the time limit [s] is over; and whether it was done.

    What was not done may cost the bound of theorem 5.1: at worst the plan is the extension of nothing. The clock is
    looked at every few hundredths of a second; every second, if dozens of 1,000 queries share every partition.
    """
    if not problem.queries:
        return problem.plan(np.zeros(problem.costs.size, dtype=bool), optimal=False), True
    require_at_most(problem, MOST_QUERIES)
    go_on, done = deadline(time_limit_s), True
    of = blocks(problem)
    empty = Candidates.empty(of, problem.limit)
    value, recovered = empty.at([0]).best()
    initial = _initial(of, empty)
    least = _grain(of.priorities) * (1 - MARGIN)
    if initial.any() and value + least < ceiling(of, problem.limit):
        try:
            for better in _over_pairs(of, empty, initial, value, least, go_on):
                recovered = better
        except OutOfTime:
            done = False
    complete = ~np.r_[~recovered, False][of.needs].any(axis=1)
    return problem.plan(problem.union(complete), optimal=False), done


def _over_pairs(
    of: Blocks, empty: Candidates, initial: Mask, value: float, least: float, go_on: GoOn
) -> Iterator[Mask]:
    """What ever better extensions of the pairs of the initial set recover, the most promising pairs first."""
    few = np.count_nonzero(initial) <= BATCH
    found = unknown(of, empty) if few else reach(of, empty, initial, go_on)
    found.bound[~initial] = -np.inf
    for number in reversed(range(len(found.starts))):
        start = found.starts[number]
        one, other = start.distinct(*np.nonzero((found.number == number) & (found.bound > value + least)))
        order = np.argsort(-found.bound[one, other], kind="stable")
        bounds = found.bound[one[order], other[order]]
        for first in range(0, order.size, BATCH):
            go_on()
            if bounds[first] <= value + least:
                break
            batch = order[first : first + BATCH]
            reached, recovered = start.pairs(one[batch], other[batch]).best(value, least, go_on)
            if reached > value:
                value = reached
                yield recovered


def _initial(of: Blocks, empty: Candidates) -> Mask:
    """The pairs that fit, each once, without their mirror images; a query with itself stands for the query alone."""
    cost, needs = empty.cost[0], of.incidence()
    union = cost[:, None] + cost - ((needs * of.costs[:-1]) @ needs.T).toarray()
    np.fill_diagonal(union, cost)
    run, rank = _runs(of)
    apart = (rank[:, None] == 0) & (rank == 0) | (run[:, None] == run) & (rank[:, None] == 0) & (rank == 1)
    return np.triu((union <= empty.room) & apart)


def _runs(of: Blocks) -> tuple[Indices, Indices]:
    """Runs of queries that can change places, and the place of each query in its run.

    They share the same blocks with others, have as much for themselves, and are worth the same; nothing is between
    them, so that ties with other queries fall out the same.
    """
    alone = np.r_[of.sizes == 1, False][of.needs]
    own = np.where(alone, of.row_costs, 0.0).sum(axis=1)
    shared = np.sort(np.where(alone, of.count, of.needs), axis=1)
    rows = np.column_stack([own, of.priorities, shared])
    begins = np.r_[True, np.any(rows[1:] != rows[:-1], axis=1)]
    run = np.cumsum(begins) - 1
    return run, np.arange(run.size) - np.flatnonzero(begins)[run]


def _grain(priorities: Floats) -> float:
    """What all priorities are multiples of, and so the least by which two plans of different priority differ; or 0."""
    unit = 1.0 if np.all(priorities % 1 == 0) else priorities.max()
    parts = priorities / unit
    if parts.max() > 1e6 or np.any(parts % 1):
        return 0.0
    return unit * float(np.gcd.reduce(parts.astype(int)))


def ceiling(of: Blocks, room: float) -> float:
    """What no plan is worth more than, by the linear relaxation: a query is worth its least recovered block."""
    queries, needed = of.incidence().nonzero()
    pairs, places = queries.size, np.arange(queries.size)
    ends = (np.r_[places, places], np.r_[queries, of.priorities.size + needed])
    within = sparse.csr_array((np.repeat([1.0, -1.0], pairs), ends), (pairs, of.priorities.size + of.count))
    with np.errstate(over="ignore"):  # without room
        costs = np.minimum(of.costs[:-1] / max(room, np.finfo(float).tiny), 2.0)
    top = of.priorities.max() or 1.0
    worth = of.priorities / top
    budget = sparse.csr_array(np.r_[np.zeros(worth.size), costs][None, :])
    limits = np.r_[np.zeros(pairs), 1.0]
    found = linprog(np.r_[-worth, np.zeros(of.count)], sparse.vstack([within, budget]), limits, bounds=(0, 1))
    if found.status != 0:
        return np.inf
    payments, price = np.maximum(-found.ineqlin.marginals[:-1], 0), max(-found.ineqlin.marginals[-1], 0)
    left = worth - np.bincount(queries, payments, worth.size)
    over = np.bincount(needed, payments, of.count) - price * costs
    return float(price + np.maximum(left, 0).sum() + np.maximum(over, 0).sum()) * top * (1 + MARGIN)
