"""`aftershock abort`: end a live run by hand, everything healed at once."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from aftershock.cli.declare import PASSED, command, show
from experiments.errors import EnvironmentFailure

if TYPE_CHECKING:
    from aftershock.run.abort import Abortion


def add(commands: Any) -> None:
    """Declare `aftershock abort`."""
    text = "end a live run: undo its faults at once, tear it down, and publish it as failed"
    declared = command(commands, "abort", text, abort_run)
    declared.add_argument("run_id", help="a live run")


def abort_run(arguments: argparse.Namespace) -> int:
    """Abort a run; raises `EnvironmentFailure` when a fault could not be undone."""
    from aftershock.watch.live import abort_with_leftovers

    aborted = abort_with_leftovers(arguments.run_id)
    show(arguments, aborted.to_json(), _line(aborted))
    if aborted.left:
        names = ", ".join(f"{kind} of {host}" for host, kind in aborted.left)
        raise EnvironmentFailure(f"could not undo {names}", "the run's teardown removes its cluster")
    return PASSED


def _line(aborted: Abortion) -> str:
    what = aborted.rest if aborted.came_late else f"aborted: {aborted.done}{_rest(aborted)}"
    return f"run {aborted.run_id} {what}"


def _rest(aborted: Abortion) -> str:
    """What is still to come: the teardown of a run that a scheduler began waits for a scheduler."""
    from aftershock.airflow import leftover_files
    from aftershock.run.lease import Lease, state_of
    from results.runs import store

    run_id = aborted.run_id
    waits = run_id in store.all_live() and state_of(store.live_directory(run_id)) is Lease.NONE
    if not waits or leftover_files.is_served():
        return aborted.rest
    return f"; no `aftershock serve` runs here to tear the run down: start it, or `aftershock clean {run_id}`"
