"""`aftershock recommend`: what a finished run advises for the next one."""

from __future__ import annotations

import argparse
from typing import Any

from aftershock.cli.declare import PASSED, command, show


def add(commands: Any) -> None:
    """Declare `aftershock recommend`."""
    text = "what a run advises: the checkpoint interval, and the utilization and recovery latency to expect"
    declared = command(commands, "recommend", text, recommend_for_run)
    declared.add_argument("run_id", help="a finished run in which faults lost work")


def recommend_for_run(arguments: argparse.Namespace) -> int:
    """Show what a run advises; raises `BadInput` for a run that advises nothing."""
    from results.predictions.recommendation import recommend
    from results.runs import store
    from results.views.recommended import recommended

    found = recommend(store.ReadOnce.of(store.finished(arguments.run_id)))
    show(arguments, found.to_json(), recommended(found))
    return PASSED
