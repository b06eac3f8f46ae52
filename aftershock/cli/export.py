"""`aftershock results export`: writes runs to a folder or a ZIP file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aftershock.cli.declare import PASSED, command, show
from experiments.wording import counted


def add(words: Any) -> None:
    """Declare `aftershock results export`."""
    declared = command(words, "export", "write the results of runs to a folder or a ZIP file", export_runs)
    declared.add_argument("run_ids", nargs="+", metavar="RUN", help="a finished run")
    declared.add_argument("--out", type=Path, required=True, metavar="PATH", help="FILE.zip, or a folder to make")
    declared.add_argument("--raw", action="store_true", help="include raw logs, which `recompute` needs")


def export_runs(arguments: argparse.Namespace) -> int:
    """Export finished runs, each once; raises `BadInput` for a run that is not finished, or a path that exists."""
    from results.runs import store
    from results.runs.export import export

    runs = [store.readable(run_id) for run_id in dict.fromkeys(arguments.run_ids)]
    manifest = export(runs, arguments.out.absolute(), arguments.raw)
    files = sum(len(run["files"]) for run in manifest["runs"])
    show(arguments, manifest, f"{counted(len(runs), 'run')}, {counted(files, 'file')}: {arguments.out}")
    return PASSED
