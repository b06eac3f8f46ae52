"""`aftershock results regress` and `compare`: have runs become better or worse?"""

from __future__ import annotations

import argparse
from typing import Any

from aftershock.cli.declare import NOT_ALL_PASSED, PASSED, command, show
from results.regression.change import Change
from results.verdict import Verdict


def add(words: Any) -> None:
    """Declare `aftershock results regress` and `aftershock results compare`."""
    declared = command(words, "regress", "judge the latest runs by earlier ones of the same experiment", regress)
    declared.add_argument("experiment", nargs="?", help="its name; without it every experiment is judged")
    declared = command(words, "compare", "runs side by side, or judged by a baseline", compare)
    declared.add_argument("run_id", nargs="+", help="finished runs")
    text = "judge the runs by these ones: earlier runs, say, or those of another version"
    declared.add_argument("--against", nargs="+", metavar="RUN_ID", help=text)


def regress(arguments: argparse.Namespace) -> int:
    """Judge the latest runs and record the comparison; the exit code is 1 if a metric became worse."""
    from results.regression.regress import regress
    from results.regression.wording import report

    found = regress(arguments.experiment)
    document, metrics = found.document(), found.rows("regression")
    show(arguments, {**document, "metrics": metrics}, report(document, metrics))
    return _exit_code(document["verdict"])


def compare(arguments: argparse.Namespace) -> int:
    """Show runs side by side, or judge them by others; exit code 1: they are worse, or their pooled check failed."""
    from results.regression.compare import against, side_by_side
    from results.regression.wording import columns, judged

    if arguments.against is None:
        found = side_by_side(arguments.run_id)
        show(arguments, found, columns(found))
        return NOT_ALL_PASSED if found["pooled"] and found["pooled"]["verdict"] == Verdict.FAIL else PASSED
    found = against(arguments.run_id, arguments.against)
    show(arguments, found, judged(found))
    return _exit_code(found["verdict"])


def _exit_code(verdict: str) -> int:
    return NOT_ALL_PASSED if verdict == Change.WORSE else PASSED
