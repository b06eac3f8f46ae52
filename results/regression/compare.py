"""Runs that the caller names: side by side, or judged against a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.errors import BadInput
from results import store
from results.regression.history import Row, row, stratified
from results.regression.judging import overall
from results.regression.regress import judge_splits


def side_by_side(run_ids: Sequence[str]) -> dict[str, Any]:
    """What each run measured: `{runs: [{run_id, experiment, machine, metrics}], differ}`.

    `differ` names what the runs do not have in common, which may be why their figures differ: "experiment", "machine".
    Raises `BadInput` for fewer than two runs, and for one that is not there.
    """
    if len(run_ids) < 2:
        raise BadInput("run_id", " ".join(run_ids), "two runs or more")
    runs = _rows(run_ids)
    names = ("run_id", "experiment", "machine", "metrics")
    return {"runs": [{name: getattr(run, name) for name in names} for run in runs], "differ": _differences(runs)}


def against(run_ids: Sequence[str], baseline_ids: Sequence[str]) -> dict[str, Any]:
    """Judge runs against a baseline: `{verdict, metrics: rows of the table regression, differ}`.

    Raises `BadInput` for a run that is not there, and for one that is on both sides.
    """
    if both := sorted(set(run_ids) & set(baseline_ids)):
        raise BadInput("--against", both[0], "runs other than those that are judged")
    candidates, baseline = _rows(run_ids), _rows(baseline_ids)
    (judgements,) = judge_splits([stratified(candidates, baseline)])
    return {
        "verdict": overall([one.verdict for one in judgements]).value,
        "metrics": [one.row() for one in judgements],
        "differ": _differences([*candidates, *baseline]),
    }


def _rows(run_ids: Sequence[str]) -> list[Row]:
    return [row(store.finished(run_id)) for run_id in run_ids]


def _differences(runs: Sequence[Row]) -> list[str]:
    facts = {"experiment": {run.experiment_digest for run in runs}, "machine": {run.machine for run in runs}}
    return [name for name, values in facts.items() if len(values) > 1]
