"""The latest runs of experiments held against their baselines: judged all together, and recorded."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from experiments.errors import BadInput
from results.metrics import METRICS, Better, Metric, Scale
from results.regression import history, records
from results.regression.change_points import ChangePoint, change_points
from results.regression.history import Row, Series, Split
from results.regression.judging import Change, Judgement, from_scale, judge, margin, overall
from results.regression.records import Regression
from results.regression.wording import sentence

LONGEST_HISTORY = 400  # runs in which changes are looked for


def regress(experiment: str | None = None) -> Regression:
    """Judge the latest runs of every experiment, or of the one that is named, and record what was found.

    Raises `BadInput` when there is no run to judge, or when `baselines.yaml` cannot be used.
    """
    followed = history.latest_series(experiment)
    if not followed:
        allowed = "the name of an experiment with finished runs that say what they ran and where"
        raise BadInput("experiment", experiment or "all", allowed)
    pins, aside = history.read_pins(), records.set_aside()
    splits = [history.split(series, aside, pins) for series in followed]
    judged = judge_splits(splits)
    entries = [_entry(*each) for each in zip(followed, splits, judged, strict=True)]
    tables = {
        "regression": [
            {**_where(series), **one.row()} for series, own in zip(followed, judged, strict=True) for one in own
        ],
        "change_points": [row for series in followed for row in _changes(series)],
    }
    return records.keep(_document(entries), tables)


def judge_splits(splits: Sequence[Split]) -> list[list[Judgement]]:
    """Judge every metric that was measured, of all splits together, since each may give a false alarm."""
    pairs = [[history.pair(metric, split.strata) for metric in METRICS.values()] for split in splits]
    measured = [[pair for pair in own if pair.measured] for own in pairs]
    judgements = iter(judge([pair for own in measured for pair in own]))
    return [[next(judgements) for _ in own] for own in measured]


def baseline_run_ids() -> set[str]:
    """The runs that later ones are compared with, or soon will be, pinned ones included: they must not be deleted.

    Also those that will be again once their tables are computed again, after a change of the schemas.
    """
    pins, aside = history.read_pins(), records.set_aside()
    followed = [series for outdated in (False, True) for series in history.all_series(outdated=outdated)]
    splits = [history.split(series, aside, pins) for series in followed]
    in_use = {run.run_id for split in splits if split.baseline for run in (*split.candidates, *split.baseline)}
    return in_use.union(*pins.values())


def _document(entries: list[dict[str, Any]]) -> dict[str, Any]:
    regression_id = f"regression-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    verdict = overall([Change(entry["verdict"]) for entry in entries])
    head = {"regression_id": regression_id, "recorded_ns": time.time_ns(), "verdict": verdict.value}
    return {**head, "experiments": entries}


def _entry(series: Series, split: Split, judgements: Sequence[Judgement]) -> dict[str, Any]:
    changed = [one for one in judgements if one.verdict in (Change.WORSE, Change.BETTER)]
    return {
        **_where(series),
        "verdict": overall([one.verdict for one in judgements]).value,
        "candidates": [run.run_id for run in split.candidates],
        "baseline": [run.run_id for run in split.baseline],
        "pinned": split.pinned,
        "sentences": [sentence(one.row()) for one in sorted(changed, key=lambda one: one.verdict is Change.BETTER)],
    }


def _where(series: Series) -> dict[str, str]:
    return {"experiment": series.experiment, "experiment_digest": series.digest, "machine": series.machine}


def _changes(series: Series) -> Iterator[dict[str, Any]]:
    return ({**_where(series), **change} for metric in METRICS.values() for change in changes(series, metric))


def changes(series: Series, metric: Metric) -> list[dict[str, Any]]:
    """The changes in the history of a metric: none of a count, whose level is zero.

    metric, unit, run_id and started_ns (of the first run of the new level), verdict, before, after, p_value.
    """
    runs = [run for run in series.runs if metric.name in run.metrics][-LONGEST_HISTORY:]
    if not runs or metric.scale is Scale.COUNT:
        return []
    found = change_points(history.levelled(metric, runs), margin(metric))
    return [_change(metric, runs[change.place], change) for change in found]


def _change(metric: Metric, run: Row, change: ChangePoint) -> dict[str, Any]:
    worse = (change.after > change.before) == (metric.better is Better.LOWER)
    return {
        "metric": metric.name,
        "unit": metric.unit,
        "run_id": run.run_id,
        "verdict": (Change.WORSE if worse else Change.BETTER).value,
        "started_ns": run.started_ns,
        "before": from_scale(metric, change.before),
        "after": from_scale(metric, change.after),
        "p_value": change.p_value,
    }
