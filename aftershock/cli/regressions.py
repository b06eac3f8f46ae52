"""`aftershock results regress` and `compare`: have runs become better or worse?"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from aftershock.cli.declare import NOT_ALL_PASSED, PASSED, command, show
from experiments.errors import BadInput
from results.regression.change import Change
from results.verdict import Verdict

EVERY = ""  # workload


def add(words: Any) -> None:
    """Declare `aftershock results regress` and `aftershock results compare`."""
    declared = command(words, "regress", "judge the latest runs against earlier ones of the same experiment", regress)
    declared.add_argument("experiment", nargs="?", help="name of the experiment; default: every experiment")
    declared = command(words, "compare", "compare runs or protections, or judge runs against a baseline", compare)
    declared.add_argument("run_id", nargs="*", help="finished or published runs")
    text = "judge the runs against these runs, such as earlier runs or runs of another version"
    declared.add_argument("--against", nargs="+", metavar="RUN_ID", help=text)
    text = (
        "compare protections of this workload instead of runs; default: every workload (docs/reference/protection.md)"
    )
    declared.add_argument("--matrix", nargs="?", const=EVERY, metavar="WORKLOAD", help=text)
    text = "with --matrix: write matrix.csv, matrix.png and matrix.svg into this folder"
    declared.add_argument("--out", type=Path, metavar="DIR", help=text)


def regress(arguments: argparse.Namespace) -> int:
    """Judge the latest runs and record the comparison; the exit code is 1 if a metric became worse."""
    from results.regression.regress import regress
    from results.regression.wording import report

    found = regress(arguments.experiment)
    comparison, metrics = found.document(), found.rows("regression")
    text = ""
    if not arguments.json:
        where = [_where(each.candidates, each.baseline, filter(each.has, metrics)) for each in comparison.experiments]
        text = report(comparison, metrics, where)
    show(arguments, {**comparison.to_json(), "metrics": metrics}, text)
    return _exit_code(comparison.verdict)


def compare(arguments: argparse.Namespace) -> int:
    """Show runs side by side, or judge them by others; exit code 1: they are worse, or their pooled check failed."""
    if arguments.matrix is not None:
        return _matrix(arguments)
    if arguments.out is not None:
        raise BadInput("--out", str(arguments.out), "a folder with --matrix: only that is written to one")
    from results.regression.compare import against, side_by_side
    from results.regression.wording import columns, judged

    if arguments.against is None:
        found = side_by_side(arguments.run_id)
        show(arguments, found.to_json(), columns(found))
        return NOT_ALL_PASSED if found.pooled is not None and found.pooled.verdict is Verdict.FAIL else PASSED
    compared = against(arguments.run_id, arguments.against)
    text = ""
    if not arguments.json:
        where = _where(arguments.run_id, arguments.against, [one.row() for one in compared.judgements])
        text = judged(compared, where)
    show(arguments, compared.to_json(), text)
    return _exit_code(compared.verdict)


def _where(runs: Iterable[str], baseline: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """By metric that became worse, if it is known: the newest run that parts from its baseline, and where."""
    from results.views.causes import causes_of_worse

    return {metric: found.words for metric, found in causes_of_worse(runs, baseline, rows).items()}


def _matrix(arguments: argparse.Namespace) -> int:
    """Show what protects each workload side by side; raises `BadInput` for a workload without finished runs."""
    from results.protection.matrix import matrices, workloads
    from results.summary import index
    from results.views.protection import shown
    from results.views.protection_plot import write

    if arguments.run_id or arguments.against:
        raise BadInput("--matrix", arguments.matrix, "no run beside it: it looks at all that are finished")
    rows = index.rows()
    found = matrices(rows, arguments.matrix or None)
    if arguments.matrix and not found:
        known = ", ".join(workloads(rows)) or "there is none yet"
        raise BadInput("--matrix", arguments.matrix, f"a workload of finished runs, or its first word: {known}")
    written = [] if arguments.out is None else [str(each) for each in write(arguments.out.absolute(), found)]
    text = "\n".join([shown(found), *(f"written: {each}" for each in written)])
    show(arguments, {"matrices": [each.to_json() for each in found], "written": written}, text)
    return PASSED


def _exit_code(verdict: str) -> int:
    return NOT_ALL_PASSED if verdict == Change.WORSE else PASSED
