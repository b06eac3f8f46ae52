"""Every planner of recovery by the name of its algorithm."""

from __future__ import annotations

from collections.abc import Callable

from models.recovery.best_density import best_density
from models.recovery.density_beam import density_beam
from models.recovery.dynamic_programming import dynamic_programming
from models.recovery.exact import exact
from models.recovery.operator_centric import operator_centric
from models.recovery.problem import RecoveryPlan, RecoveryProblem

PLANNERS: dict[str, Callable[[RecoveryProblem], RecoveryPlan]] = {
    "exact": exact,
    "dp": dynamic_programming,
    "best-density": best_density,
    "density-beam": density_beam,
    "operator-centric": operator_centric,
}
