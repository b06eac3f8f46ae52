"""`aftershock predict fidelity`: the quality of tentative output while tasks of a topology are failed."""

from __future__ import annotations

import argparse
from typing import Any

from aftershock.cli.declare import PASSED, command, show
from aftershock.cli.topology import add_failed, add_topology, failed_tasks
from experiments.wording import significant


def add(commands: Any) -> None:
    """Declare `aftershock predict fidelity`."""
    declared = command(commands, "fidelity", "predict the quality of tentative output", predict_fidelity)
    add_topology(declared)
    add_failed(declared)


def predict_fidelity(arguments: argparse.Namespace) -> int:
    """Predict output fidelity and internal completeness; raises `BadInput` for a task that the topology lacks."""
    from models.fidelity import score
    from models.topology import load_topology

    topology = load_topology(arguments.topology)
    failed = failed_tasks(topology, arguments.failed)
    quality = score(topology, failed)
    text = (
        f"{failed.sum()} of {failed.size} tasks failed\n"
        f"output fidelity          {significant(quality.output_fidelity)}\n"
        f"internal completeness    {significant(quality.internal_completeness)}"
    )
    show(arguments, quality._asdict(), text)
    return PASSED
