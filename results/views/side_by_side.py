"""Runs side by side: how they differ, and each metric relative to the first.

One run against one is no test: `results.regression` says what a change means, given enough runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from experiments.wording import signed, significant
from results.damage import Damaged
from results.regression.change import Change
from results.runs.store import Run
from results.summary.availability import Availability, availability, least_ahead
from results.summary.index import IndexRow
from results.summary.metrics import METRICS, Better, Metric, Scale
from results.views.charts import ledger

MOST_PERCENT = 1_000


@dataclass(frozen=True)
class Compared:
    """One run's value of a metric; `change` and `text` are against the first run's, None where either is missing.

    A change smaller than the metric's minimum effect counts as none.
    """

    value: float | None
    change: Change | None
    text: str | None


def metric_table(rows: Sequence[IndexRow]) -> dict[str, list[Compared]]:
    """For each metric that any of the runs measured, one entry per run."""
    measured = {name: [row.metrics.get(name) for row in rows] for name in METRICS}
    return {
        name: [_compared(METRICS[name], values[0], value, first=not i) for i, value in enumerate(values)]
        for name, values in measured.items()
        if any(value is not None for value in values)
    }


def _compared(metric: Metric, base: float | None, value: float | None, *, first: bool) -> Compared:
    if first or base is None or value is None:
        return Compared(value, None, None)
    by = value - base
    if metric.scale is Scale.RATIO:
        base, value_ = (max(abs(each), metric.resolution) for each in (base, value))
        by = value_ / base - 1 if base else 0.0
    counts = abs(by) >= (metric.minimum_effect or 0) and by != 0
    better = (by > 0) == (metric.better is Better.HIGHER)
    change = (Change.BETTER if better else Change.WORSE) if counts else Change.SAME
    return Compared(value, change, _in_words(by) if metric.scale is Scale.RATIO else signed(by))


def _in_words(by: float) -> str:
    """A relative change; above 1,000 % as a factor, which is read faster."""
    return f"{signed(100 * by)} %" if by < MOST_PERCENT / 100 else f"{significant(1 + by)} times"


def differences(rows: Sequence[IndexRow], names: Sequence[str]) -> dict[str, list[Any]]:
    """The facts of these names that are not the same in all runs, one value per run."""
    told = {name: [_fact(row, name) for row in rows] for name in names}
    return {name: values for name, values in told.items() if len(set(map(str, values))) > 1}


def _fact(row: IndexRow, name: str) -> Any:
    known = {"experiment": row.experiment, "machine": row.machine, "digest": row.experiment_digest}
    return known.get(name) or row.facts.get(name)


def charts(runs: Sequence[Run], rows: Sequence[IndexRow]) -> dict[str, Any]:
    """What the comparison's charts show: shares of the ledgers [%] by class, utilizations, and available queries."""
    ledgers = {run.run_id: ledger(run) for run in runs}
    known = {run_id: each for run_id, each in ledgers.items() if each}
    classes = list(next(iter(known.values()))["seconds"]) if known else []
    shares = {name: [100 * each["seconds"][name] / each["window_s"] for each in known.values()] for name in classes}
    found = [row.utilization for row in rows]
    utilization = {name: [getattr(each, name) for each in found] for name in ("measured", "predicted", "low", "high")}
    return {
        "ledgers": {"names": list(known), "shares": shares} if known else None,
        "availabilities": _availabilities(runs),
        "utilizations": {"names": [row.run_id for row in rows], **utilization},
    }


def never_behind(runs: Sequence[Run]) -> list[tuple[str, str, float]]:
    """For every two runs that lost queries, in the order given: whether the first ever has fewer queries available.

    The third is by how much, as a share; 0 if never. Two runs are left out if no burst struck
    both. What is late by a tenth of the time, or by a batch, is on time.
    """
    found = [(run.run_id, each) for run in runs if (each := _known_availability(run))]
    return [
        (one[0], other[0], max(0.0, -ahead))
        for one, other in combinations(found, 2)
        if (ahead := least_ahead(one[1], other[1])) is not None
    ]


def _known_availability(run: Run) -> Availability | None:
    """None also of a run whose table is damaged, which its own page says: the others are shown."""
    with suppress(Damaged):
        return availability(run)
    return None


def _availabilities(runs: Sequence[Run]) -> dict[str, Any] | None:
    """The share of available queries of each run that lost some, by seconds since its first loss."""
    found = {run.run_id: each for run in runs if (each := _known_availability(run))}
    if not found:
        return None
    end_s = max(each.turns_s[-1] for each in found.values())
    moments_s = {name: np.r_[0.0, each.turns_s, end_s] for name, each in found.items()}
    return {
        "names": list(found),
        "at_s": [moments_s[name].tolist() for name in found],
        "shares": [each.share(moments_s[name]).tolist() for name, each in found.items()],
    }
