"""BestDensity.

Source: `incremental`, section 5, algorithm 3 and theorem 5.1.
"""

from __future__ import annotations

import numpy as np

from models.recovery.greedy import Blocks, Candidates, blocks
from models.recovery.problem import RecoveryPlan, RecoveryProblem


def best_density(problem: RecoveryProblem) -> RecoveryPlan:
    of = blocks(problem)
    empty = Candidates.empty(of, problem.limit)
    value, rec = empty.at([0]).best()
    M = of.priorities.size
    inc = of.incidence()
    cost = empty.cost[0]
    union = cost[:, None] + cost - ((inc * of.costs[:-1]) @ inc.T).toarray()
    m, n = np.nonzero(np.triu(union <= problem.limit))
    for i in range(0, m.size, 1000):
        mm, nn = m[i : i + 1000], n[i : i + 1000]
        c = empty.at(np.zeros(mm.size, int))
        e = np.arange(mm.size)
        c.take(e, mm)
        c.take(e, nn)
        v, r = c.best()
        if v > value:
            value, rec = v, r
    return plan_of(problem, of, rec)


def plan_of(problem, of, rec):
    done = ~np.r_[~rec, False][of.needs].any(axis=1)
    return problem.plan(problem.union(done), False)
