"""The greedy planner: replicate the tasks whose failure alone would hurt the most.

Source: `ppa`, section IV-B, algorithm 2. It does not see whether the tasks of its plan make up whole MC-trees, so with
a small budget it often keeps no output at all; that is the defect which the structure-aware planner mends.
"""

from __future__ import annotations

import numpy as np

from models.fidelity import Failures, Scorer
from models.replication.plan import ReplicationPlan, require_budget
from models.topology import Topology

_DIGITS = 12  # what is equal but for rounding is a tie


def plan(topology: Topology, budget: int) -> ReplicationPlan:
    """Replicate the `budget` tasks with the lowest output fidelity when only that task fails (algorithm 2).

    Ties go to the earlier task. All tasks when the budget covers them. Raises `BadInput` for a budget below 0.
    """
    require_budget(topology, budget)
    scorer = Scorer(topology)
    if_alone_failed = [scorer.output_fidelity(_each_alone(topology, span)) for span in topology.span.values()]
    ranked = np.argsort(np.round(np.concatenate(if_alone_failed), _DIGITS), kind="stable")
    replicated = np.zeros(len(topology.tasks), dtype=bool)
    replicated[ranked[:budget]] = True
    return ReplicationPlan(replicated, optimal=False)


def _each_alone(topology: Topology, span: slice) -> Failures:
    """The failure sets of one task each of an operator: one operator at a time bounds the memory."""
    failed = np.zeros((span.stop - span.start, len(topology.tasks)), dtype=bool)
    np.fill_diagonal(failed[:, span], True)
    return failed
