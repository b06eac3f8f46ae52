"""Plans by internal completeness, which `ppa` compares with plans by output fidelity (figure 12).

In the paper the structure-aware algorithm makes both kinds of plans, "with OF (or IC) as the optimization metric". It
does not say what a tree is if the metric is internal completeness. This metric takes a join for a union, so this module
does, too: one input of a join is enough for a tree.

The other reading keeps the trees of definition 1, in which a join needs all of its inputs. With it, plans for Q2 have
whole regions only, as plans by output fidelity have. So no plan could gain internal completeness without accuracy,
although the paper reports such plans. In the paper, the streams into the join may have been cut into units, but its
text does not say how many tasks its operators have.

This planner is not among `PLANNERS`, because a query should not be protected in this way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments.errors import BadInput
from models.fidelity import Scorer
from models.replication.plan import ReplicationPlan, require_budget
from models.replication.structured_topology import StructuredPlanner
from models.topology import InputCorrelation, Partitioning, Topology


def plan(topology: Topology, budget: int) -> ReplicationPlan:
    """Replicate trees whose joins need one input, always what raises internal completeness most for each task.

    Algorithms 5 and 3 of `ppa`, for topologies without full streams. At most `budget` tasks; fewer where no further
    tree fits. A join that lacks an input has no output, so the plan may leave none. `optimal` says nothing here, as it
    is about output fidelity. Raises `BadInput` for a budget below 0, for a topology with a full stream, and for one
    that is too large (see `models.replication.units`).
    """
    require_budget(topology, budget)
    for stream in topology.streams:
        if stream.partitioning is Partitioning.FULL:
            allowed = "one-to-one, split or merge, for plans by internal completeness"
            raise BadInput(f"streams.{stream.name}.partitioning", stream.partitioning.value, allowed)
    planner = StructuredPlanner(_with_unions(topology), Scorer.internal_completeness)
    replicated, left = np.zeros(len(topology.tasks), dtype=bool), budget
    while (added := planner.expansion(replicated, left)).any():
        replicated, left = replicated | added, left - int(added.sum())
    return ReplicationPlan(replicated, optimal=False)


def _with_unions(topology: Topology) -> Topology:
    """The topology with a union in the place of each join."""
    unions = (each.model_copy(update={"inputs": InputCorrelation.INDEPENDENT}) for each in topology.operators)
    return replace(topology, operators=tuple(unions))
