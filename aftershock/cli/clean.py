"""`aftershock clean`: remove what dead runs left on this machine and in S3."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from aftershock.cli.declare import PASSED, command, show
from experiments.wording import on_one_line

if TYPE_CHECKING:
    from aftershock.watch.clean import Cleaning
    from infra.leftovers import Traces


def add(commands: Any) -> None:
    """Declare `aftershock clean`."""
    declared = command(commands, "clean", "remove what dead runs left on this machine and in S3", clean_up)
    named = "a run that Airflow's scheduler started must be named, and so must a finished run with objects in S3"
    declared.add_argument("run_id", nargs="?", help=f"only this run; {named}; default: all dead runs")


def clean_up(arguments: argparse.Namespace) -> int:
    """Clean up and show what was done; the exit code is that of the first error, if any."""
    from aftershock.watch.clean import clean

    cleaning = clean(arguments.run_id)
    show(arguments, cleaning.to_json(), "\n".join(_lines(cleaning)))
    for error in cleaning.refused:
        print(f"aftershock: {error}", file=sys.stderr)
    return cleaning.refused[0].exit_code if cleaning.refused else PASSED


def _lines(cleaning: Cleaning) -> list[str]:
    """Safe to print: other users may have chosen the root of a process and the names of files."""
    lines = [f"removed {_named(traces)}" for traces in cleaning.removed]
    lines += [f"run {run_id} was published as failed" for run_id in cleaning.published]
    lines += [f"deleted {each.objects} objects of run {each.run_id} at {each.place}" for each in cleaning.emptied]
    lines += [f"removed {path}" for path in cleaning.swept]
    lines = lines or ["nothing was removed" if cleaning.refused else "nothing to remove"]
    lines += [f"left alone {_named(traces)}: {reason}" for traces, reason in cleaning.kept]
    return [on_one_line(line) for line in lines]


def _named(traces: Traces) -> str:
    found = f"{traces.label}: {traces.processes} processes, {traces.namespaces} namespaces, {traces.mounts} mounts"
    found += f", {traces.containers} containers and networks" if traces.containers else ""
    return f"{found} ({traces.root or 'root unknown'})"
