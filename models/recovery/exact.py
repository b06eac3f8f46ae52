"""The best recovery plan by integer programming: a set-union knapsack, solved by HiGHS.

Source: `incremental`, definition 2 and eq. 1; the paper itself has only an enumeration (`dynamic_programming`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from models.inputs import require
from models.recovery.problem import Floats, Mask, RecoveryPlan, RecoveryProblem

TIME_LIMIT_S = 60.0
GAP = 1e-6  # of the highest priority: what HiGHS leaves open when it calls a solution optimal


class Bounded(NamedTuple):
    """A plan, and a priority that is proved to be out of reach of any better one."""

    plan: RecoveryPlan
    upper_bound: float


def exact(problem: RecoveryProblem, time_limit_s: float = TIME_LIMIT_S) -> RecoveryPlan:
    """The plan of highest priority; `optimal` is False if the time limit [s] came before the proof.

    Proved up to a millionth of the highest priority of a query. Raises `BadInput` for a time limit not above 0.
    """
    return exact_with_bound(problem, time_limit_s).plan


def exact_with_bound(problem: RecoveryProblem, time_limit_s: float = TIME_LIMIT_S) -> Bounded:
    """`exact`, with the proved upper bound: no plan that fits has a higher priority."""
    require("time_limit_s", time_limit_s, time_limit_s > 0, "a finite time above 0")
    alone = problem.needs @ problem.costs <= problem.limit
    top = float(problem.priorities[alone].max(initial=0.0))
    if top == 0:
        plan = problem.plan(problem.union(alone & (problem.needs @ problem.costs == 0)), optimal=True)
        return Bounded(plan, plan.priority)
    return _Search(problem, alone, top, monotonic() + time_limit_s).run()


@dataclass
class _Search:
    """Solve, look whether the plan really fits, forbid it if it does not, and solve again.

    HiGHS lets a row be violated by its tolerance, and drops tiny coefficients. What it finds is recomputed here.
    """

    problem: RecoveryProblem
    alone: Mask
    top: float
    deadline: float
    forbidden: list[Floats] = field(default_factory=list)

    def run(self) -> Bounded:
        bound = float(self.problem.priorities[self.alone].sum())
        while True:
            found = self._solve()
            if found.mip_dual_bound is not None:
                bound = min(bound, -found.mip_dual_bound * self.top)
            queries = np.zeros(self.alone.size, dtype=bool)
            if found.x is not None:
                queries[self.alone] = found.x[: self.alone.sum()] > 0.5
            chosen = self.problem.union(queries)
            if self.problem.cost(chosen) <= self.problem.limit:
                return self._result(chosen, bound)
            if found.status != 0:
                return self._result(np.zeros_like(chosen), bound)
            self.forbidden.append(queries[self.alone].astype(float))

    def _solve(self):
        within = self.problem.union(self.alone)
        needs, costs = self.problem.needs[self.alone][:, within], self.problem.costs[within]
        queries, partitions = needs.shape
        pairs = needs.tocoo()
        rows = np.arange(pairs.nnz)
        needed = sparse.hstack(
            [
                sparse.csr_array((np.ones(pairs.nnz), (rows, pairs.row)), (pairs.nnz, queries)),
                sparse.csr_array((-np.ones(pairs.nnz), (rows, pairs.col)), (pairs.nnz, partitions)),
            ]
        )
        scale = self.problem.limit or 1.0
        budget = np.r_[np.zeros(queries), costs / scale][None, :]
        constraints = [LinearConstraint(needed, ub=0.0), LinearConstraint(budget, ub=self.problem.limit / scale)]
        constraints += [
            LinearConstraint(np.r_[f, np.zeros(partitions)][None, :], ub=f.sum() - 1) for f in self.forbidden
        ]
        return milp(
            np.r_[-self.problem.priorities[self.alone] / self.top, np.zeros(partitions)],
            # y is a whole number whenever x is, but with y continuous HiGHS writes a line to standard output on its own
            integrality=np.ones(queries + partitions),
            bounds=Bounds(0, 1),
            constraints=constraints,
            options={"time_limit": max(self.deadline - monotonic(), 0.01), "mip_rel_gap": 0.0},
        )

    def _result(self, chosen: Mask, bound: float) -> Bounded:
        plan = self.problem.plan(chosen, optimal=False)
        bound = max(bound, plan.priority)
        proved = bound - plan.priority <= GAP * max(self.top, math.ulp(1.0) * plan.priority)
        return Bounded(plan._replace(optimal=proved), bound)
