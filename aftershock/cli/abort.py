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
    from aftershock.run.abort import abort

    aborted = abort(arguments.run_id)
    show(arguments, aborted.to_json(), _line(aborted))
    if aborted.left:
        names = ", ".join(f"{kind} of {host}" for host, kind in aborted.left)
        raise EnvironmentFailure(f"could not undo {names}", "the run's teardown removes its cluster")
    return PASSED


def _line(aborted: Abortion) -> str:
    what = aborted.rest if aborted.came_late else f"aborted: {aborted.done}{aborted.rest}"
    return f"run {aborted.run_id} {what}"
