"""`aftershock plan replication`: which tasks of a topology to replicate actively."""

from __future__ import annotations

import argparse
from typing import Any

from aftershock.cli.declare import PASSED, command, show
from aftershock.cli.topology import add_topology, by_operator, proof
from experiments.recovery_modes import ReplicationPlanner
from experiments.wording import significant

ALGORITHMS = tuple(each.value for each in ReplicationPlanner)


def add(commands: Any) -> None:
    """Declare `aftershock plan replication`."""
    declared = command(commands, "replication", "plan which tasks to replicate actively", plan_replication)
    add_topology(declared)
    declared.add_argument("--budget", type=int, required=True, help="how many tasks can be replicated")
    declared.add_argument(
        "--algorithm", choices=ALGORITHMS, required=True, help="docs/reference/topologies.md compares the algorithms"
    )


def plan_replication(arguments: argparse.Namespace) -> int:
    """Plan which tasks to replicate, and show the quality when every other task has failed."""
    from models.fidelity import score, worst_case
    from models.replication.planners import PLANNERS
    from models.topology import load_topology

    topology = load_topology(arguments.topology)
    plan = PLANNERS[arguments.algorithm](topology, arguments.budget)
    quality = score(topology, worst_case(plan.replicated))
    found = {"tasks": topology.names(plan.replicated), **quality._asdict(), "optimal": plan.optimal}
    lines = [
        f"replicate {len(found['tasks'])} of {len(topology.tasks)} tasks (budget {arguments.budget}):",
        *by_operator(topology, plan.replicated),
        "when every other task has failed:",
        f"  output fidelity          {significant(quality.output_fidelity)}   {proof(plan.optimal)}",
        f"  internal completeness    {significant(quality.internal_completeness)}",
    ]
    show(arguments, found, "\n".join(lines))
    return PASSED
