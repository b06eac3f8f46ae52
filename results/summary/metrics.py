"""The metrics that compare runs: their meaning, which direction is better, and the smallest change that counts.

A metric is one number for a run. What a run did not measure has no entry, which is never zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd

from experiments.spec import LoadMode
from results.damage import Outdated
from results.runs.store import Run
from results.summary.findings import (
    number,
    quality_totals,
    table_or_empty,
    the_run,
    utilizations,
    with_measured_cost,
)


class Better(StrEnum):
    """Which way a metric improves."""

    HIGHER = "higher"
    LOWER = "lower"


class Scale(StrEnum):
    """How the values of two sets of runs are held against each other."""

    RATIO = "ratio"  # of their medians
    DIFFERENCE = "difference"  # of their medians, where the usual value is near zero
    COUNT = "count"  # what should not happen: zero stays zero, unless it happens by chance


@dataclass(frozen=True)
class Metric:
    """One figure of a run.

    `minimum_effect` is the smallest change of a median that counts: as a ratio (.05 is 5 % up or down), or in the
    metric's own unit on the scale `difference`; counts have none. Values below `resolution` count as equal to it, so
    that a ratio always has a meaning. A count is above zero `by_chance` where that needs no mistake. A metric
    `of_recoveries` is a median over those of the run.
    """

    name: str
    unit: str
    better: Better
    meaning: str
    measure: Callable[[Run], float | None]
    minimum_effect: float | None = 0.05
    scale: Scale = Scale.RATIO
    resolution: float = 0.0
    by_chance: bool = False
    of_recoveries: bool = False

    @property
    def label(self) -> str:
        """The name in words, without the unit."""
        return self.name.removesuffix("_s").replace("_", " ")

    @property
    def head(self) -> str:
        """What stands beside the values of single runs: the unit, and whether each value is a median."""
        return f"{self.unit} (median)" if self.of_recoveries else self.unit


def metrics_of(run: Run) -> dict[str, float]:
    """Return what a run measured, by the names of `METRICS` and in their order; raises `Damaged`."""
    measured = {name: _measured(metric, run) for name, metric in METRICS.items()}
    return {name: value for name, value in measured.items() if value is not None and np.isfinite(value)}


def _measured(metric: Metric, run: Run) -> float | None:
    """None also where a table is of an older version of the code and lacks a column."""
    try:
        return metric.measure(run)
    except Outdated:
        return None


def _fact(name: str) -> Callable[[Run], float | None]:
    """A column of the table `runs`, if this run's has it."""

    def measure(run: Run) -> float | None:
        facts = the_run(run)
        return None if facts is None else number(facts.get(name))

    return measure


def _phase(name: str, end: str, *, of_one_fault: bool = False) -> Callable[[Run], float | None]:
    """The median over a run's recoveries: one that was not seen to reach `end` took longer than all others.

    Infinite if most did not reach it. Left out is a recovery that reached it, but whose phase has no begin: an outage
    that nobody noticed. So is, with `of_one_fault`, one that further faults made longer.
    """

    def measure(run: Run) -> float | None:
        recoveries = table_or_empty(run, "recoveries")
        took = recoveries[name].mask(recoveries["faults"] > 1) if of_one_fault else recoveries[name]
        return _median(took.mask(recoveries[end].isna(), np.inf))

    return measure


def _median(values: pd.Series) -> float | None:
    known = values.dropna()
    return float(known.median()) if len(known) else None


def usual_checkpoints(run: Run) -> pd.DataFrame:
    """The rows of table `checkpoints` that metric `checkpoint_s` is of: of undisturbed batches in the window."""
    table = with_measured_cost(table_or_empty(run, "checkpoints"))
    return table[table["in_window"] & table["undisturbed"] & (table["records"] > 0)]


def _checkpoint_s(run: Run) -> float | None:
    usual = usual_checkpoints(run)
    return float(usual["checkpoint_s"].mean()) if len(usual) else None


def _p99_s(run: Run) -> float | None:
    """The latency that 99 of 100 records stayed below, every record counted with the p99 of its second.

    None under a saturating load, where latency grows with the length of the run (docs/reference/measurement.md).
    """
    table = table_or_empty(run, "latency").sort_values("p99_s")
    if table.empty or load_mode(run) == LoadMode.SATURATING:
        return None
    reached = table["records"].astype("float64").cumsum().to_numpy()
    return float(table["p99_s"].iloc[int(np.searchsorted(reached, 0.99 * reached[-1]))])


def load_mode(run: Run) -> str | None:
    """How the rate of records was set; None if the run does not say it. Raises `Damaged`."""
    try:
        return run.experiment().get("load", {}).get("mode")
    except FileNotFoundError:
        return None


def _results(name: str) -> Callable[[Run], float | None]:
    """A sum over the query's closed windows."""

    def measure(run: Run) -> float | None:
        totals = quality_totals(run)
        return None if totals is None else float(totals[name])

    return measure


def _model_error(run: Run) -> float | None:
    found = utilizations(run)
    return None if found.measured is None or found.predicted is None else abs(found.measured - found.predicted)


def _recovery(name: str, end: str, meaning: str, *, of_one_fault: bool = False) -> Metric:
    whose = "recoveries from a single fault" if of_one_fault else "recoveries"
    note = f"median over the run's {whose} of the time from {meaning}"
    measure = _phase(name, end, of_one_fault=of_one_fault)
    return Metric(name, "s", Better.LOWER, note, measure, minimum_effect=0.1, resolution=0.01, of_recoveries=True)


def _count(name: str, meaning: str, *, by_chance: bool = False) -> Metric:
    return Metric(name, "results", Better.LOWER, meaning, _results(name), None, Scale.COUNT, by_chance=by_chance)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "utilization",
            "",
            Better.HIGHER,
            "share of the window that is useful or idle",
            _fact("utilization"),
            resolution=0.001,
        ),
        _recovery("detect_s", "death_ns", "death to notice"),  # a death that nobody noticed counts as not measured
        # From the notice of the first fault on, so the time between two faults would count as restart.
        _recovery("restart_s", "ready_ns", "notice to ready, if most came to it", of_one_fault=True),
        _recovery("restore_s", "restored_ns", "ready to the progress before the fault, if most came to it"),
        _recovery("catch_up_s", "normal_ns", "that progress to the usual lag, if most came back to it"),
        Metric(
            "service_rate",
            "records/s",
            Better.HIGHER,
            "median processing rate of undisturbed batches",
            _fact("service_rate"),
            resolution=0.1,
        ),
        Metric(
            "sustainable_rate",
            "records/s",
            Better.HIGHER,
            "the highest load at which lag stays bounded, found by search",
            _fact("sustainable_rate"),
            resolution=0.1,
        ),
        Metric(
            "checkpoint_s",
            "s",
            Better.LOWER,
            "mean checkpoint time of the undisturbed batches",
            _checkpoint_s,
            minimum_effect=0.1,
            resolution=0.01,
        ),
        Metric(
            "p99_latency_s",
            "s",
            Better.LOWER,
            "latency that 99 of 100 records do not exceed; not measured under a saturating load",
            _p99_s,
            minimum_effect=0.1,
            resolution=0.01,
        ),
        _count("lost", "results of the oracle that the query did not emit"),
        _count("wrong", "results that differ from the oracle's"),
        _count("duplicated", "copies of results beyond the first", by_chance=True),  # a kill amid a write makes some
        Metric(
            "tentative_accuracy",
            "",
            Better.HIGHER,
            "share of the exact results among what was emitted between fault and full recovery",
            _fact("tentative_accuracy"),
            resolution=0.001,
        ),
        Metric(
            "model_error",
            "",
            Better.LOWER,
            "distance of measured from predicted utilization",
            _model_error,
            minimum_effect=0.02,
            scale=Scale.DIFFERENCE,
        ),
    )
}
