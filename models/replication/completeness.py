"""The plan of the highest internal completeness, which `ppa` compares with plans of high output fidelity (figure 12).

In the paper the structure-aware algorithm plans by internal completeness, but the paper does not say how: that
algorithm builds MC-trees, in which a join needs all of its inputs, and internal completeness knows no joins. So this
module tries every plan with the given number of tasks. Tentative output is compared, so only plans count under which
some output is left. This planner is not among `PLANNERS`, because a query should not be protected in this way.
"""

from __future__ import annotations

from itertools import chain, combinations
from math import comb

import numpy as np
import numpy.typing as npt

from experiments.errors import BadInput
from models.fidelity import Scorer, worst_case
from models.replication.plan import ReplicationPlan, require_budget
from models.replication.ties import first_highest
from models.topology import Topology

MOST_PLANS = 200_000  # that are scored: about a second, and some 100 MB


def plan(topology: Topology, budget: int) -> ReplicationPlan:
    """Replicate the `budget` tasks that keep internal completeness highest, of those that keep any output fidelity.

    No task where no plan keeps any. Ties go to the earlier tasks. `optimal` says nothing here, as it is about output
    fidelity. Raises `BadInput` for a budget below 0, and for a topology with more than `MOST_PLANS` plans.
    """
    require_budget(topology, budget)
    tasks = len(topology.tasks)
    if (count := comb(tasks, min(budget, tasks))) > MOST_PLANS:
        raise BadInput("topology", f"{count} plans of {budget} of {tasks} tasks", f"at most {MOST_PLANS} plans")
    plans = _plans(tasks, min(budget, tasks))
    scorer, failures = Scorer(topology), worst_case(plans)
    worth = scorer.internal_completeness(failures) * (scorer.output_fidelity(failures) > 0)
    best = first_highest(worth)
    return ReplicationPlan(plans[best] & bool(worth[best]), optimal=False)


def _plans(tasks: int, size: int) -> npt.NDArray[np.bool_]:
    """Every set of `size` tasks, (sets, tasks), those of earlier tasks first."""
    count = comb(tasks, size)
    chosen = np.fromiter(chain.from_iterable(combinations(range(tasks), size)), np.intp, count * size)
    plans = np.zeros((count, tasks), dtype=bool)
    plans[np.arange(count)[:, None], chosen.reshape(count, size)] = True
    return plans
