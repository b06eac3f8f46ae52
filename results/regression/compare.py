"""Compares runs that the caller names: side by side, or judged against a baseline."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.errors import BadInput
from results.predictions.pooled import are_of_one_experiment, pooled
from results.regression.history import HistoryRow, row, stratified
from results.regression.named_runs import JudgedRuns, RunsSideBySide
from results.regression.not_measured import missing_values
from results.regression.regress import judge_splits
from results.runs import store
from results.runs.machine_speed import are_alike
from results.runs.state import RunState
from results.summary.experiment_fields import fields_apart
from results.summary.judged_checks import failed_checks


def side_by_side(run_ids: Sequence[str]) -> RunsSideBySide:
    """What each run measured. Published runs are not pooled.

    Raises `BadInput` for fewer than two runs, and for one that is not there.
    """
    runs = _rows(run_ids)
    if len(runs) < 2:
        raise BadInput("run_id", " ".join(run_ids), "two runs or more, or runs --against others")
    read = [store.ReadOnce.of(store.readable(run_id)) for run_id in run_ids]
    failed = {run.run_id: failed_checks(run) for run in read}
    missing = dict(zip(run_ids, missing_values(read, [run.metrics for run in runs]), strict=True))
    own = not any(run.is_published for run in runs)
    same = are_of_one_experiment(run.experiment_digest for run in runs)
    together = pooled([store.finished(run_id) for run_id in run_ids]) if own and same else None
    return RunsSideBySide(runs, failed, missing, fields_apart(read), _differences(*([run] for run in runs)), together)


def against(run_ids: Sequence[str], baseline_ids: Sequence[str]) -> JudgedRuns:
    """Judge runs against a baseline.

    Raises `BadInput` for a run that is not there, and for one that is on both sides.
    """
    if both := sorted(set(run_ids) & set(baseline_ids)):
        raise BadInput("--against", both[0], "runs other than those that are judged")
    candidates, baseline = _rows(run_ids), _rows(baseline_ids)
    (judgements,) = judge_splits([stratified(candidates, baseline)])
    fields = fields_apart([store.readable(run_id) for run_id in (*run_ids, *baseline_ids)])
    return JudgedRuns(judgements, len(run_ids), fields, _differences(candidates, baseline))


def _rows(run_ids: Sequence[str]) -> list[HistoryRow]:
    """What comparisons need of each run, which may be a published one.

    Raises `BadInput` for one that is named twice, is not done, or has tables of another version; `Outdated` for a
    published one of another version.
    """
    found = [row(store.readable(run_id)) for run_id in run_ids]
    for place, one in enumerate(found):
        if one.state != RunState.DONE:
            raise BadInput("run_id", one.run_id, f"runs that are done: this one is {one.state}")
        if one.run_id in run_ids[:place]:
            raise BadInput("run_id", one.run_id, "each run once")
        store.require_present_version("run_id", one.run_id, one.schema_version)
    return found


def _differences(*sides: Sequence[HistoryRow]) -> list[str]:
    every = [run for side in sides for run in side]
    facts: dict[str, set[object]] = {
        "experiment": {run.experiment_digest for run in every},
        "machine": {run.machine for run in every},
    }
    facts["seeds"] = {frozenset(run.facts.get("seed") for run in side) for side in sides}
    speeds = [run.machine_speed for run in every if run.machine_speed is not None]
    differ = [name for name, values in facts.items() if len(values) > 1]
    return differ if not speeds or are_alike(min(speeds), max(speeds)) else [*differ, "machine speed"]
