"""`aftershock results recompute`: make the results of runs again, from their raw logs by the code as it is now."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from aftershock.cli.declare import PASSED, command, show
from experiments.errors import AftershockError, EnvironmentFailure
from results.runs.state import RunState

ALL = "all"


def add(words: Any) -> None:
    """Declare `aftershock results recompute`."""
    text = "make tables, predictions, verdicts and report of a run again, from its raw logs"
    declared = command(words, "recompute", text, recompute_runs)
    declared.add_argument("run_id", metavar="RUN", help="a finished run, or all: every run that did not fail")


def recompute_runs(arguments: argparse.Namespace) -> int:
    """If a run cannot be recomputed, the others go on, and the exit code is 3."""
    from aftershock.run.recompute import recompute
    from results.runs import store

    if arguments.run_id != ALL:
        run = recompute(arguments.run_id)
        show(arguments, run.status().to_json(), f"{run.run_id} was computed again: {run.report}")
        return PASSED
    every = [run.known_status() for run in store.all_finished()]
    done = [status.run_id for status in every if status.state == RunState.DONE]
    damaged = {status.run_id: str(status.error) for status in every if status.state == RunState.UNREADABLE}
    failed = dict(damaged)
    for number, run_id in enumerate(done, 1):
        print(f"{number} of {len(done)}: {run_id}", file=sys.stderr)
        try:
            recompute(run_id)
        except (AftershockError, OSError) as error:
            failed[run_id] = str(error)
    again = [run_id for run_id in done if run_id not in failed]
    lines = [
        f"{len(again)} of {len(done) + len(damaged)} runs were computed again",
        *(f"not {id}: {why}" for id, why in failed.items()),
    ]
    show(arguments, {"recomputed": again, "failed": failed}, "\n".join(lines))
    return EnvironmentFailure.exit_code if failed else PASSED
