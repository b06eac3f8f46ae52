"""BestDensity for a plan that cannot wait: pairs are extended only around the queries that are worth most alone.

Source: `incremental`, section 5, algorithm 3. At an arrival of a node the coordinator waits for the plan, and algorithm
3 extends every pair of failed queries: seconds for 1,000 of them. Here the amount of work is bounded, unless the plan
may miss the bound of theorem 5.1.
"""

from __future__ import annotations

import math

import numpy as np

from models.recovery.best_density import BATCH, best_density, ceiling
from models.recovery.best_density import MOST_QUERIES as MOST_BY_PAIRS
from models.recovery.greedy import Blocks, Candidates, Indices, blocks
from models.recovery.pair_bounds import Start, unknown
from models.recovery.problem import Floats, Mask, RecoveryPlan, RecoveryProblem, require_at_most

MOST_QUERIES = 10_000
MOST_STEPS = 80_000  # extensions by one query, of all single queries together and of all pairs together
WIDEST = 8  # single queries whose pairs are extended


def density_beam(problem: RecoveryProblem, *, alone: bool = False) -> RecoveryPlan:
    """The best extension of nothing, of single queries, and of the pairs that one of the best single queries is in.

    A plan of BestDensity is found where one query of its pair is among the best ones: those whose own extensions are
    worth most, at most `WIDEST`, and fewer where `MOST_STEPS` does not reach so far. So the priority is at most that of
    BestDensity. The bound of theorem 5.1, 1 - exp(-1/d) of the optimum, is checked by linear relaxation; if a plan may
    miss it, BestDensity itself decides, which takes as long as it takes. With `alone`, and with more queries than
    BestDensity takes, the plan stands, although it may miss the bound. Raises `BadInput` for more than `MOST_QUERIES`.
    """
    if not problem.queries:
        return problem.plan(np.zeros(problem.costs.size, dtype=bool), optimal=False)
    require_at_most(problem, MOST_QUERIES)
    of = blocks(problem)
    empty = Candidates.empty(of, problem.limit)
    value, recovered = empty.at([0]).best()
    steps = max(int(_complete(of, recovered).sum()), 1)
    start, fitting = unknown(of, empty).starts[0], _by_density(empty)
    singles, values = _extended(start, fitting[: _affordable(steps)])
    if values.size and values.max() > value:
        value, recovered = float(values.max()), singles[values.argmax()]
    widest = min(WIDEST, _affordable(steps) // max(fitting.size, 1))
    best = fitting[: values.size][np.argsort(-values, kind="stable")[:widest]]
    for query in best.tolist():
        value, recovered = _with_partners(start, query, fitting, value, recovered)
    can_decide = not alone and len(problem.queries) <= MOST_BY_PAIRS
    if can_decide and value < (1 - math.exp(-1 / problem.shares.max())) * ceiling(of, problem.limit):
        return best_density(problem)
    return problem.plan(problem.union(_complete(of, recovered)), optimal=False)


def _affordable(steps: int) -> int:
    """How many plans can be extended if each of them takes `steps` steps."""
    return max(MOST_STEPS // steps, 1)


def _by_density(empty: Candidates) -> Indices:
    """The queries that fit, those of the highest profit density first."""
    queries = np.flatnonzero(empty.cost[0] <= empty.room)
    return queries[np.argsort(-empty.density[0, queries], kind="stable")]


def _extended(start: Start, queries: Indices) -> tuple[Mask, Floats]:
    """The blocks that the extension of each query recovers, and its priority."""
    recovered, values = [], []
    for first in range(0, queries.size, BATCH):
        batch = queries[first : first + BATCH]
        plans = start.pairs(batch, batch)
        while plans.step().any():
            pass
        recovered.append(plans.recovered[:, :-1])
        values.append(plans.value)
    return (np.concatenate(recovered), np.concatenate(values)) if values else (np.empty((0, 0), bool), np.empty(0))


def _with_partners(start: Start, query: int, others: Indices, value: float, recovered: Mask) -> tuple[float, Mask]:
    """The best extension of the pairs of one query, if it is worth more than `value`."""
    for first in range(0, others.size, BATCH):
        batch = others[first : first + BATCH]
        plans = start.pairs(np.full(batch.size, query), batch)
        plans = plans.at(np.flatnonzero(plans.room >= 0))
        if plans.room.size:
            reached, by = plans.best(value)
            if reached > value:
                value, recovered = reached, by
    return value, recovered


def _complete(of: Blocks, recovered: Mask) -> Mask:
    """The queries of which all blocks are recovered."""
    return ~np.r_[~recovered, False][of.needs].any(axis=1)
