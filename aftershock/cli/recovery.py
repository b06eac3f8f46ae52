"""`aftershock plan recovery`: which failed partitions of a topology to recover first."""

from __future__ import annotations

import argparse
from typing import Any

from aftershock.cli.declare import PASSED, command, show
from aftershock.cli.topology import add_failed, add_topology, by_operator, failed_tasks, proof
from experiments.recovery_modes import RecoveryPlanner
from experiments.wording import significant

ALGORITHMS = tuple(each.value for each in RecoveryPlanner)


def add(commands: Any) -> None:
    """Declare `aftershock plan recovery`."""
    declared = command(commands, "recovery", "plan which failed partitions to recover first", plan_recovery)
    add_topology(declared)
    add_failed(declared)
    declared.add_argument(
        "--capacity", type=float, required=True, help="largest total cost of the partitions in the plan"
    )
    declared.add_argument(
        "--algorithm", choices=ALGORITHMS, required=True, help="docs/reference/topologies.md compares the algorithms"
    )


def plan_recovery(arguments: argparse.Namespace) -> int:
    """Plan which failed partitions to recover, and show the plan by operator."""
    from models.recovery.planners import PLANNERS
    from models.recovery.problem import recovery_problem
    from models.topology import load_topology

    topology = load_topology(arguments.topology)
    problem = recovery_problem(topology, failed_tasks(topology, arguments.failed), arguments.capacity)
    plan = PLANNERS[arguments.algorithm](problem)
    recovered = topology.names(plan.partitions)
    found = {
        "partitions": recovered,
        "queries": list(plan.queries),
        "priority": plan.priority,
        "optimal": plan.optimal,
    }
    spent, wanted = topology.values("costs")[plan.partitions].sum(), problem.priorities.sum()
    lines = [
        f"recover {len(recovered)} of {problem.failed.sum()} failed partitions "
        f"(cost {significant(spent)} of a capacity of {significant(arguments.capacity)}):",
        *by_operator(topology, plan.partitions),
        f"that recovers {len(plan.queries)} of {len(problem.queries)} failed queries: {', '.join(plan.queries) or '-'}",
        f"  priority    {significant(plan.priority)} of {significant(wanted)}   {proof(plan.optimal)}",
    ]
    show(arguments, found, "\n".join(lines))
    return PASSED
