"""`aftershock clean`: remove what dead runs left on this machine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from aftershock.commands.declare import PASSED, command, show

if TYPE_CHECKING:
    from aftershock.clean import Cleaning
    from infra.leftovers import Traces


def add(commands: Any) -> None:
    declared = command(commands, "clean", "remove what dead runs left on this machine", clean_up)
    text = "also a live run that was not begun by `aftershock benchmark`, when it is over"
    declared.add_argument("run_id", nargs="?", help=text)


def clean_up(arguments: argparse.Namespace) -> int:
    from aftershock.clean import clean

    cleaning = clean(arguments.run_id)
    show(arguments, cleaning.to_json(), "\n".join(_lines(cleaning)))
    return PASSED


def _lines(cleaning: Cleaning) -> list[str]:
    lines = [f"removed {_named(traces)}" for traces in cleaning.removed]
    lines += [f"run {run_id} was published as failed" for run_id in cleaning.published]
    lines = lines or ["nothing to remove"]
    return lines + [f"left alone {_named(traces)}: {reason}" for traces, reason in cleaning.kept]


def _named(traces: Traces) -> str:
    found = f"{traces.token}: {traces.processes} processes, {traces.namespaces} namespaces, {traces.mounts} mounts"
    found += f", {traces.containers} containers and networks" if traces.containers else ""
    return f"{found} ({traces.root or 'root unknown'})"
