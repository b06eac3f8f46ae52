"""A planner with the limits of a run: if it refuses, or is not done in time, a quick planner helps it out.

The testbed plans so, and the tables of results predict by it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments.errors import BadInput
from experiments.waiting import Deadline
from models.recovery.best_density import best_density_within
from models.recovery.density_beam import density_beam
from models.recovery.exact import exact
from models.recovery.planners import PLANNERS
from models.recovery.problem import RecoveryPlan, RecoveryProblem

EXACT, BEST_DENSITY, FALLBACK = "exact", "best-density", "density-beam"


def time_left(limit_s: float) -> Callable[[], float]:
    """What tells how much of a limit that begins now is left [s]; below 0 once it is over."""
    end = Deadline(limit_s)
    return lambda: end.left_s


def plan_within(problem: RecoveryProblem, planner: str, limit_s: float) -> tuple[RecoveryPlan, tuple[str, ...]]:
    """The plan of a planner by its name, and one line for each time that the planner left it to another.

    limit_s   after so long planners `exact` and `best-density` stop to look for a better plan [s]; of 0 or less, they
              do not begin, and `density-beam`, which helps them out, does not leave it to `best-density`. The others
              have no limit, so that what they plan does not depend on the machine: `dp` bounds its work, as does
              `density-beam` unless its plan may miss the bound of theorem 5.1, and `operator-centric` is done at once

    Where the quick planner refuses, too, nothing is planned.
    """
    if planner == FALLBACK:
        return _quick(problem)
    if planner in (EXACT, BEST_DENSITY) and limit_s <= 0:
        return _quick(problem, f"planner {FALLBACK} instead of {planner}: no time is left", alone=True)
    try:
        plan, unfinished = _planned(problem, planner, limit_s)
    except BadInput as refusal:
        return _quick(problem, f"planner {FALLBACK} instead of {planner}: {refusal.value}, {refusal.allowed}")
    if not unfinished:
        return plan, ()
    quick, notes = _quick(problem, f"the better plan of {planner} and {FALLBACK}: {unfinished}", alone=True)
    return max(plan, quick, key=lambda each: each.priority), notes


def _planned(problem: RecoveryProblem, planner: str, limit_s: float) -> tuple[RecoveryPlan, str]:
    """The plan, and what its planner did not finish in time."""
    if planner == EXACT:
        plan = exact(problem, limit_s)
        return plan, "" if plan.optimal else f"{EXACT} had no proof in time"
    if planner == BEST_DENSITY:
        plan, done = best_density_within(problem, limit_s)
        return plan, "" if done else f"{BEST_DENSITY} had not looked at every pair in time"
    return PLANNERS[planner](problem), ""


def _quick(problem: RecoveryProblem, *notes: str, alone: bool = False) -> tuple[RecoveryPlan, tuple[str, ...]]:
    """The quick planner's plan; one of nothing where that refuses."""
    try:
        return density_beam(problem, alone=alone), notes
    except BadInput as refusal:
        nothing = problem.plan(np.zeros(problem.costs.size, dtype=bool), optimal=False)
        return nothing, (*notes, f"{FALLBACK} plans nothing: {refusal.value}, {refusal.allowed}")
