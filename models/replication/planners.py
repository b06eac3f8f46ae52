"""Every planner of replication by the name of its algorithm."""

from __future__ import annotations

from collections.abc import Callable

from models.replication import dynamic_programming, exact, greedy, structure_aware
from models.replication.exact import ExactPlan
from models.replication.plan import ReplicationPlan
from models.topology import Topology

Planner = Callable[[Topology, int], ReplicationPlan | ExactPlan]

PLANNERS: dict[str, Planner] = {
    "exact": exact.plan,
    "dp": dynamic_programming.plan,
    "structure-aware": structure_aware.plan,
    "greedy": greedy.plan,
}
