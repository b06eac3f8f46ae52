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
    declared.add_argument("run_id", nargs="?", help="a finished or published run; default: list the finished runs")
    declared.add_argument("--published", action="store_true", help="list the runs that came with the repository")
    for module in (regressions, recompute, export, publish, prune):
        module.add(words)


def show_results(arguments: argparse.Namespace) -> int:
    """List the finished runs or the published ones, or show one of either.

    Raises `BadInput` for a run that this version cannot read, and for a run together with `--published`.
    """
    from results.damage import Outdated
    from results.runs import store
    from results.views.document import document
    from results.views.terminal import summary

    if arguments.run_id is None:
        return _list_runs(arguments)
    if arguments.published:
        raise BadInput("--published", arguments.run_id, "no run beside it: it lists the published runs")
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
    """Every finished run, or every published one, newest first; whole lines where they do not go to a terminal."""
    from results.summary import index
    from results.views.listing import entry, own_runs, published_runs

    every = index.rows(with_published=True)
    rows = [row for row in every if row.is_published == arguments.published]
    count = sum(row.is_published for row in every)
    width = shutil.get_terminal_size((sys.maxsize, 1)).columns
    text = published_runs(rows, width) if arguments.published else own_runs(rows, width, count)
    show(arguments, {"runs": [entry(row) for row in rows], "published_runs": count}, text)
    return PASSED
