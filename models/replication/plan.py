"""A replication plan, and the budget that every planner is given."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from experiments.errors import BadInput
from models.topology import Topology


class ReplicationPlan(NamedTuple):
    """The tasks that are replicated actively.

    replicated  boolean vector over the topology's tasks, true for at most `budget` of them
    optimal     proved to reach the highest output fidelity of the worst case; False is "not proved"
    """

    replicated: npt.NDArray[np.bool_]
    optimal: bool


def require_budget(topology: Topology, budget: int) -> None:
    """Raise `BadInput` unless `budget` counts tasks: 0 or more (more than there are is allowed: all of them)."""
    if not isinstance(budget, int | np.integer) or budget < 0:
        raise BadInput(
            "budget", budget, f"a whole number of 0 or more replicated tasks (the topology has {len(topology.tasks)})"
        )
