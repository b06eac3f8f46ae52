"""The best recovery plan by integer programming: a set-union knapsack, solved by HiGHS.

Source: `incremental`, definition 2 and eq. 1; the paper itself has only an enumeration (`dynamic_programming`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from time import monotonic
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp

from models.inputs import MOST, require
from models.recovery.problem import Floats, Mask, RecoveryPlan, RecoveryProblem

TIME_LIMIT_S = 60.0
TOLERANCE = 1e-6  # of HiGHS, the largest: for the gap, for whole numbers, for rows; that of reduced costs is 1e-7
HIGHEST = 1e3  # of the objective's coefficients; larger ones would turn errors of x and of the cuts into large gaps
ROUNDS = 100  # what is not proved by then has a crowd of plans within the tolerance of the best one
LARGEST_RATIO = 10**6  # of priorities that are looked at as multiples of one number
INFEASIBLE = 2  # a status of `milp`; 0 is solved


class Bounded(NamedTuple):
    """A plan, and a priority that is proved to be out of reach of any better one."""

    plan: RecoveryPlan
    upper_bound: float


def exact(problem: RecoveryProblem, time_limit_s: float = TIME_LIMIT_S) -> RecoveryPlan:
    """The plan of highest priority; `optimal` is False if the time limit [s] came before the proof.

    `optimal` holds up to the rounding of the sum of the priorities. It is also False where too many plans differ from
    the best one by less than HiGHS tells apart, some 1e-9 of the highest priority for every query and partition. That
    does not concern priorities that are small multiples of one number. Raises `BadInput` for a time limit not above 0.
    """
    return exact_with_bound(problem, time_limit_s).plan


def exact_with_bound(problem: RecoveryProblem, time_limit_s: float = TIME_LIMIT_S) -> Bounded:
    """`exact`, with the proved upper bound: no plan that fits has a higher priority, in any order of summation."""
    require("time_limit_s", time_limit_s, time_limit_s > 0, "a finite time above 0")
    return _Search(problem, monotonic() + time_limit_s).run()


@dataclass
class _Search:
    """Solve, see what the solution really costs and is worth, forbid it, and solve again until the proof holds.

    HiGHS lets a row be violated by its tolerance, drops tiny coefficients, and stops short of tiny improvements. So a
    solution is only a hint, from which a plan that fits is made; and a bound counts only with all tolerances added.
    The best plan is the optimum when that bound of all the plans which are not forbidden does not exceed it, or does
    by less than the step between the sums of priorities.
    """

    problem: RecoveryProblem
    deadline: float
    forbidden: list[LinearConstraint] = field(default_factory=list)

    def run(self) -> Bounded:
        best = self._completed(np.zeros_like(self.candidates))
        bound = float(self.worths.sum())
        for _ in range(ROUNDS):
            if self._proved(best, bound):
                break
            found = self._solve()
            bound = min(bound, max(self._bound(found), self._value(best)))
            if found.x is None:
                break
            best = max(self._learn(found.x), best, key=self._value)
            bound = max(bound, self._value(best))
            if found.status != 0:
                break
        proved = self._proved(best, bound)
        upper_bound = (self._value(best) if proved else bound) + self.rounding
        return Bounded(self.problem.plan(best, optimal=proved), upper_bound)

    @cached_property
    def candidates(self) -> Mask:
        """The queries worth choosing: those that fit alone, and have a priority."""
        return (self.problem.needs @ self.problem.costs <= self.problem.limit) & (self.problem.priorities > 0)

    @cached_property
    def needs(self) -> sparse.csr_array:
        """(candidates, partitions that one of them needs)."""
        return self.problem.needs[self.candidates][:, self.problem.union(self.candidates)]

    @cached_property
    def worths(self) -> Floats:
        """The priorities of the candidates."""
        return self.problem.priorities[self.candidates]

    @cached_property
    def whole(self) -> bool:
        """Whether all sums of priorities are whole numbers, and exact."""
        return bool(np.all(self.worths == np.rint(self.worths)) and self.worths.sum() <= MOST)

    @cached_property
    def step(self) -> float:
        """Sums of priorities are multiples of this, but for rounding; 0 if no such number is found."""
        if self.whole:
            return float(math.gcd(*self.worths.astype(int).tolist()))
        least = float(self.worths.min())
        if self.worths.max() > LARGEST_RATIO * least:
            return 0.0
        ratios = [Fraction(ratio).limit_denominator(LARGEST_RATIO) for ratio in (self.worths / least).tolist()]
        scale = math.lcm(*(ratio.denominator for ratio in ratios))
        step = float(Fraction(least) * math.gcd(*(int(ratio * scale) for ratio in ratios)) / scale)
        errors = np.abs(self.worths - np.rint(self.worths / step) * step) if step > 0 else np.inf
        return step if np.all(errors <= 2 * math.ulp(1.0) * self.worths) else 0.0

    @cached_property
    def unit(self) -> float:
        """What is 1 in the objective that HiGHS sees."""
        return max(self.step, float(self.worths.max()) / HIGHEST)

    @cached_property
    def rounding(self) -> float:
        """The largest error of a sum of priorities, and of its being a multiple of `step`; none for whole numbers."""
        return 0.0 if self.whole else (self.worths.size + 2) * math.ulp(1.0) * float(self.worths.sum())

    def _value(self, chosen: Mask) -> float:
        return float(self.problem.priorities[self.problem.recovered(chosen)].sum())

    def _proved(self, best: Mask, bound: float) -> bool:
        gap = bound - self._value(best)
        return gap <= self.rounding or gap + self.rounding < self.step

    def _bound(self, found: OptimizeResult) -> float:
        """What the plans that are not forbidden are proved not to exceed.

        Every variable counts twice: as an error of its reduced cost, and as one of HiGHS taking coefficients for whole.
        """
        if found.status == INFEASIBLE:
            return -math.inf
        if found.mip_dual_bound is None or not math.isfinite(found.mip_dual_bound):
            return math.inf
        return (-found.mip_dual_bound + 2 * TOLERANCE * (1 + sum(self.needs.shape))) * self.unit

    def _learn(self, x: Floats) -> Mask:
        """The plan made of a solution, which is forbidden."""
        queries = np.zeros_like(self.candidates)
        queries[self.candidates] = x[: self.needs.shape[0]] > 0.5
        chosen = self._completed(queries)
        recovered = self.problem.recovered(chosen)[self.candidates]
        # nothing fits beside it, so every other plan lacks one of its queries; and a better one has one that it lacks
        self._forbid(recovered.astype(float), most=recovered.sum() - 1)
        self._forbid(recovered.astype(float) - 1.0, most=-1)
        if np.any(queries[self.candidates] & ~recovered):  # it does not fit
            self._forbid(queries[self.candidates].astype(float), most=queries.sum() - 1)
        return chosen

    def _forbid(self, row: Floats, most: float) -> None:
        self.forbidden.append(LinearConstraint(np.r_[row, np.zeros(self.needs.shape[1])][None, :], ub=most))

    def _completed(self, preferred: Mask) -> Mask:
        """The partitions of some queries, and of all others that fit then, the densest first.

        If they do not fit together, those of low priority give way: a solution exceeds the limit by next to nothing.
        """
        problem = self.problem
        free = problem.needs @ problem.costs == 0
        chosen = problem.union(preferred | free)
        if problem.cost(chosen) > problem.limit:
            chosen = problem.union(free)
        still = self.candidates.copy()
        while True:
            left = problem.needs @ np.where(chosen, 0.0, problem.costs)
            still &= ~problem.recovered(chosen) & (left <= problem.limit - problem.cost(chosen))
            if not still.any():
                return chosen
            wanted = still & preferred
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                merit = problem.priorities if wanted.any() else problem.priorities / left
            first = np.argmax(np.where(wanted if wanted.any() else still, merit, -1.0))
            chosen = chosen | problem.union(np.arange(still.size) == first)

    def _solve(self) -> OptimizeResult:
        queries, partitions = self.needs.shape
        pairs = self.needs.tocoo()
        rows = np.arange(pairs.nnz)
        needed = sparse.hstack(
            [
                sparse.csr_array((np.ones(pairs.nnz), (rows, pairs.row)), (pairs.nnz, queries)),
                sparse.csr_array((-np.ones(pairs.nnz), (rows, pairs.col)), (pairs.nnz, partitions)),
            ]
        )
        limit, costs = self.problem.limit, self.problem.costs[self.problem.union(self.candidates)]
        budget = np.r_[np.zeros(queries), costs / (limit or 1.0)][None, :]
        return milp(
            np.r_[-self.worths / self.unit, np.zeros(partitions)],
            # y is a whole number whenever x is, but with y continuous HiGHS writes a line to standard output on its own
            integrality=np.ones(queries + partitions),
            bounds=Bounds(0, 1),
            constraints=[
                LinearConstraint(needed, ub=0.0),
                LinearConstraint(budget, ub=float(limit > 0)),
                *self.forbidden,
            ],
            options={"time_limit": max(self.deadline - monotonic(), 0.01), "mip_rel_gap": 0.0},
        )
