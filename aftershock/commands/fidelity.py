"""`aftershock predict fidelity`: the quality of tentative output while tasks of a topology are failed."""

from __future__ import annotations

import argparse
from typing import Any

from aftershock.commands.declare import PASSED, command, show
from aftershock.commands.topology import add_topology, task_names


def add(commands: Any) -> None:
    declared = command(commands, "fidelity", "predict the quality of tentative output", predict_fidelity)
    add_topology(declared)
    declared.add_argument("--failed", required=True, metavar="O2.1,O3.0", help="the failed tasks")


def predict_fidelity(arguments: argparse.Namespace) -> int:
    from models.fidelity import score
    from models.topology import load_topology

    topology = load_topology(arguments.topology)
    failed = topology.mask(task_names(arguments.failed), "--failed")
    quality = score(topology, failed)
    text = (
        f"{failed.sum()} of {failed.size} tasks failed\n"
        f"output fidelity          {quality.output_fidelity:.4f}\n"
        f"internal completeness    {quality.internal_completeness:.4f}"
    )
    show(arguments, quality._asdict(), text)
    return PASSED
