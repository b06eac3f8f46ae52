"""Compares the latest runs of experiments with their baselines, judges all together, and records the verdicts."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from experiments.errors import BadInput
from results.regression import history, records
from results.regression.change import Change
from results.regression.change_points import ChangePoint, change_points
from results.regression.history import HistoryRow, Series, Split
from results.regression.judging import Judgement, Pair, from_scale, judge, margin, overall
from results.regression.records import ComparedExperiment, RecordedComparison, Regression
from results.regression.wording import PINS_PASSED_OVER, other_speeds, sentence
from results.summary.metrics import METRICS, Better, Metric, Scale

LONGEST_HISTORY = 400  # runs in which changes are looked for
NO_BASELINE = "the baseline has no run of a seed that was judged"
ONE_SIDE = "of the runs of a seed, only those on one side measured it"
SERIES = ("experiment", "experiment_digest", "machine")  # what names one


def regress(experiment: str | None = None) -> Regression:
    """Judge the latest runs of the experiment that is named, or of every one with new runs, and record what was found.

    New is what no call without a name has judged: a look at one experiment takes nothing from the night's comparison.
    Where nothing is new, what such a call judged last is judged again. Raises `BadInput` when there is no run to judge,
    or when `baselines.yaml` cannot be used.
    """
    followed = history.latest_series(experiment)
    if not followed and experiment is None:
        raise BadInput("results regress", "no run", "a home with finished runs that say what they ran and where")
    if not followed:
        allowed = "the name of an experiment with finished runs that say what they ran and where"
        raise BadInput("experiment", experiment, allowed)
    due = _split(followed) if experiment else _due(_split(followed))
    judged = list(zip(due, judge_splits([split for _, split in due]), strict=True))
    tables = {
        "regression": [{**_where(series), **one.row()} for (series, _), own in judged for one in own],
        "change_points": [row for series, _ in due for row in _changes(series)],
    }
    return records.keep(_comparison(experiment, [_entry(*pair, own) for pair, own in judged]), tables)


def _split(followed: Sequence[Series]) -> list[tuple[Series, Split]]:
    """Each series with what of it is compared; runs found worse, or on a worse level than before, are no baseline."""
    pins, aside = history.read_pins(), records.set_aside()
    return [(series, history.split(series, aside | below(series), pins)) for series in followed]


def _due(splits: list[tuple[Series, Split]]) -> list[tuple[Series, Split]]:
    """Those with candidates that no comparison of all has judged; if there are none, those of the last one."""
    compared = [each.experiments for each in records.documents() if each.asked_for is None]
    judged = {run_id for entries in compared for entry in entries for run_id in entry.candidates}
    new = [(series, split) for series, split in splits if any(run.run_id not in judged for run in split.candidates)]
    if new or not compared:
        return new or splits
    last = [{name: getattr(entry, name) for name in SERIES} for entry in compared[0]]
    return [(series, split) for series, split in splits if _where(series) in last] or splits


def judge_splits(splits: Sequence[Split]) -> list[list[Judgement]]:
    """Judge every metric that was measured, of all splits together, since each may give a false alarm."""
    pairs = [[history.pair(metric, split.strata) for metric in METRICS.values()] for split in splits]
    measured = [[pair for pair in own if pair.measured] for own in pairs]
    judgements = iter(judge([pair for own in measured for pair in own]))
    return [[_told(next(judgements), pair, split) for pair in own] for own, split in zip(measured, splits, strict=True)]


def _told(one: Judgement, pair: Pair, split: Split) -> Judgement:
    """Runs without a counterpart may hide a change, so the verdict is unknown unless another run shows one."""
    has_baseline = all(baseline for candidates, baseline in split.strata if candidates)
    blind = not has_baseline or any(bool(len(ours)) != bool(len(theirs)) for ours, theirs in pair.strata)
    reason = ONE_SIDE if has_baseline else NO_BASELINE
    if split.reseeded:
        reason = "the seeds were changed, and runs before had other faults"
    is_told = one.verdict is Change.UNKNOWN and not split.reseeded
    if one.verdict is Change.WORSE or is_told or (one.verdict is not Change.UNKNOWN and not blind):
        return one
    return replace(one, verdict=Change.UNKNOWN, why="; ".join(filter(None, [one.why, reason])))


def baseline_run_ids() -> set[str]:
    """The runs that later ones are compared with, or soon will be, pinned ones included: they must not be deleted.

    Also those that will be again once their tables are computed again, after a change of the schemas.
    """
    every = [series for outdated in (False, True) for series in history.all_series(outdated=outdated)]
    splits = [split for _, split in _split([part for series in every for part in history.by_speed(series)])]
    in_use = {run.run_id for split in splits if split.baseline for run in (*split.candidates, *split.baseline)}
    return in_use.union(*history.read_pins().values())


def _comparison(asked_for: str | None, entries: list[ComparedExperiment]) -> RecordedComparison:
    return RecordedComparison(
        regression_id=f"regression-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}",
        recorded_ns=time.time_ns(),
        verdict=overall([Change(entry.verdict) for entry in entries]),
        asked_for=asked_for,
        experiments=entries,
    )


def _entry(series: Series, split: Split, judgements: Sequence[Judgement]) -> ComparedExperiment:
    changed = [one for one in judgements if one.verdict in (Change.WORSE, Change.BETTER)]
    told = [sentence(one.row()) for one in sorted(changed, key=lambda one: one.verdict is Change.BETTER)]
    return ComparedExperiment(
        **_where(series),
        verdict=overall([one.verdict for one in judgements]),
        candidates=[run.run_id for run in split.candidates],
        baseline=[run.run_id for run in split.baseline],
        pinned=split.pinned,
        sentences=told,
        notes=_notes(series, split),
    )


def _notes(series: Series, split: Split) -> list[str]:
    return [
        *([PINS_PASSED_OVER] if split.passed_over else []),
        *([other_speeds(series.runs[-1].machine_speed, series.other_speeds)] if series.other_speeds else []),
    ]


def _where(series: Series) -> dict[str, str]:
    return dict(zip(SERIES, (series.experiment, series.digest, series.machine), strict=True))


def _changes(series: Series) -> Iterator[dict[str, Any]]:
    return ({**_where(series), **change} for metric in METRICS.values() for change in changes(series, metric))


def changes(series: Series, metric: Metric) -> list[dict[str, Any]]:
    """The changes in the history of a metric: none of a count, whose level is zero, nor where the seeds were changed.

    metric, unit, run_id and started_ns (of the first run of the new level), verdict, before, after, p_value.
    """
    return [_change(metric, stretch[one.place], one) for stretch, found in _levels(series, metric) for one in found]


@dataclass(frozen=True)
class Level:
    """The level of a metric, in its unit, from one run of a history to another one, both included."""

    first: str
    last: str
    value: float


def levels(series: Series, metric: Metric) -> list[Level]:
    """The levels before and after each change in the history of a metric, none of which crosses a change of seeds."""
    return [
        Level(stretch[start].run_id, stretch[end - 1].run_id, from_scale(metric, value))
        for stretch, found in _levels(series, metric)
        if found
        for (start, end), value in _spans(found, len(stretch))
    ]


def _spans(found: Sequence[ChangePoint], end: int) -> Iterator[tuple[tuple[int, int], float]]:
    """The places of each level, the end excluded, with its value."""
    edges = [0, *(change.place for change in found), end]
    values = [found[0].before, *(change.after for change in found)]
    return zip(pairwise(edges), values, strict=True)


def longest_stretch(series: Series, metric: Metric) -> int:
    """How many runs under the same seeds changes are looked for in, at the most; 0 for a count."""
    return max(map(len, _stretches(series, metric)), default=0)


def below(series: Series) -> set[str]:
    """The runs on a level of some metric that is worse than an earlier one, by the changes in its history."""
    return {
        stretch[place].run_id
        for metric in METRICS.values()
        for stretch, found in _levels(series, metric)
        for places in worse_places(metric, found, len(stretch))
        for place in places
    }


def worse_places(metric: Metric, found: Sequence[ChangePoint], end: int) -> Iterator[range]:
    """The places, up to `end`, of values on a level worse than the best before it by the minimum effect or more."""
    sign = 1 if metric.better is Better.LOWER else -1
    best, ends = math.inf, [*(change.place for change in found), end][1:]
    for change, until in zip(found, ends, strict=True):
        best = min(best, sign * change.before)
        if sign * change.after - best >= margin(metric):
            yield range(change.place, until)


def _levels(series: Series, metric: Metric) -> list[tuple[list[HistoryRow], list[ChangePoint]]]:
    """The stretches of a history in which levels can be compared, each with the changes in it."""
    return [
        (stretch, change_points(history.levelled(metric, stretch), margin(metric)))
        for stretch in _stretches(series, metric)
    ]


def _stretches(series: Series, metric: Metric) -> list[list[HistoryRow]]:
    runs = [run for run in series.runs if metric.name in run.metrics][-LONGEST_HISTORY:]
    return [] if metric.scale is Scale.COUNT else history.stretches(runs)


def _change(metric: Metric, run: HistoryRow, change: ChangePoint) -> dict[str, Any]:
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
