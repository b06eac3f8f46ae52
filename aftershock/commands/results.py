"""`aftershock results`: list the finished runs, or show one as the benchmark did."""

from __future__ import annotations

import argparse
from typing import Any

from aftershock.commands.declare import PASSED, command, show


def add(commands: Any) -> None:
    declared = command(commands, "results", "list the runs, or show one", show_results)
    declared.add_argument("run_id", nargs="?", help="a finished run; without it all are listed")


def show_results(arguments: argparse.Namespace) -> int:
    from results import store
    from results.document import document
    from results.listing import listing
    from results.terminal import summary

    if arguments.run_id is None:
        runs = [run.status() for run in store.all_finished()]
        show(arguments, {"runs": runs}, listing(runs))
        return PASSED
    run = store.finished(arguments.run_id)
    if run.status()["state"] == "failed":
        show(arguments, run.status(), f"{run.run_id} failed: {run.status()['error']} (its logs: {run.raw})")
    else:
        show(arguments, document(run), summary(run))
    return PASSED
