"""`aftershock recommend`: what a finished run advises for the next one."""

from __future__ import annotations

import argparse
from typing import Any

from aftershock.cli.declare import PASSED, command, number, show


def add(commands: Any) -> None:
    """Declare `aftershock recommend`."""
    text = (
        "recommend a checkpoint interval from a run, with the utilization and recovery latency to expect;"
        " for engine dataflow also which partitions to copy, with the accuracy to expect while the others are down"
    )
    declared = command(commands, "recommend", text, recommend_for_run)
    declared.add_argument("run_id", help="a finished run in which faults lost work, or one of engine dataflow")
    declared.add_argument(
        "--budget",
        type=int,
        help="number of partitions that may have a copy; default: as in the run, or half if it had none",
    )
    declared.add_argument(
        "--failure-rate",
        type=number,
        metavar="RATE",
        help="failures per second of your whole cluster, hosts that fail together as one; default: as in the run",
    )


def recommend_for_run(arguments: argparse.Namespace) -> int:
    """Show what a run advises; raises `BadInput` as `advise` does."""
    from results.predictions.advised import advise
    from results.runs import store
    from results.views.recommended import recommended

    found = advise(store.ReadOnce.of(store.readable(arguments.run_id)), arguments.budget, arguments.failure_rate)
    show(arguments, found.to_json(), recommended(found))
    return PASSED
