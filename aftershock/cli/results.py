"""`aftershock results`: list the finished runs, show one as the benchmark did, or do something with runs.

`aftershock results` and `aftershock results RUN_ID` are short for `aftershock results show`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import Any

from aftershock.cli import export, prune, publish, recompute, regressions
from aftershock.cli.declare import PASSED, command, group, show
from experiments.errors import BadInput
from experiments.wording import on_one_line
from results.runs.state import RunState


def add(commands: Any) -> None:
    """Declare `aftershock results` with the commands below it."""
    text = "list, show, compare, recompute, export, publish or remove runs"
    words = group(commands, "results", text, otherwise="show")
    declared = command(words, "show", "list the runs, or show one (the word show can be left out)", show_results)
    declared.add_argument("run_id", nargs="?", help="a finished run; default: list all")
    for module in (regressions, recompute, export, publish, prune):
        module.add(words)


def show_results(arguments: argparse.Namespace) -> int:
    """List the finished runs, or show one, also a published one; raises `BadInput` if this version cannot read it."""
    from results.damage import Outdated
    from results.runs import store
    from results.views.document import document
    from results.views.terminal import summary

    if arguments.run_id is None:
        return _list_runs(arguments)
    run = store.readable(arguments.run_id)
    status = run.status()
    if status.state == RunState.FAILED:
        why = f"{run.run_id} failed: {on_one_line(str(status.error))} (its logs: {run.raw})"
        show(arguments, status.to_json(), why)
        return PASSED
    try:
        shown = document(run), summary(run)
    except Outdated as lack:
        allowed = f"a run whose tables this version can read; `aftershock results recompute {run.run_id}` makes them so"
        raise BadInput("run_id", run.run_id, f"{allowed} ({lack.file}: {lack.why})") from None
    show(arguments, *shown)
    return PASSED


def _list_runs(arguments: argparse.Namespace) -> int:
    """Every finished run, newest first; whole lines where they do not go to a terminal."""
    from results.summary import index
    from results.views.listing import entry, listing

    rows = index.rows()
    width = shutil.get_terminal_size((sys.maxsize, 1)).columns
    show(arguments, {"runs": [entry(row) for row in rows]}, listing(rows, width))
    return PASSED
