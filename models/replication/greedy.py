"""The greedy planner: replicate the tasks whose failure alone would hurt the most.

Source: `ppa`, section IV-B, algorithm 2. It does not see whether the tasks of its plan make up whole MC-trees, so with
a small budget it often keeps no output at all; that is the defect which the structure-aware planner mends.
"""

from __future__ import annotations

import numpy as np

from models.fidelity import MOST_AT_ONCE, Scorer
from models.replication.plan import ReplicationPlan, require_budget
from models.topology import Topology

_DIGITS = 12  # what is equal but for rounding is a tie


def plan(topology: Topology, budget: int) -> ReplicationPlan:
    """Replicate the `budget` tasks with the lowest output fidelity when only that task fails (algorithm 2).

    Ties go to the earlier task. All tasks when the budget covers them. Raises `BadInput` for a budget below 0.
    """
    require_budget(topology, budget)
    scorer = Scorer(topology)
    tasks = np.arange(len(topology.tasks))
    chunks = np.array_split(tasks, 1 + tasks.size**2 // MOST_AT_ONCE)
    if_alone_failed = [scorer.output_fidelity(chunk[:, None] == tasks) for chunk in chunks]
    ranked = np.argsort(np.round(np.concatenate(if_alone_failed), _DIGITS), kind="stable")
    replicated = np.zeros(tasks.size, dtype=bool)
    replicated[ranked[:budget]] = True
    return ReplicationPlan(replicated, optimal=False)
