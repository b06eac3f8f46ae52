"""From a verdict to its cause: the table, and the second at which a run leaves its model or its baseline.

A sum over the window parts at the last second at which it still was where the model, or the baseline's runs, had it. Of
single figures (a recovery, a second's latency) it is the one that is furthest from the model, or the first one that no
run of the baseline had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from experiments import spec
from experiments.errors import BadInput
from experiments.wording import significant
from results.checks.catalogue import CHECKS
from results.checks.check import Check, Parting
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough
from results.damage import Damaged
from results.regression.change import Change
from results.runs import store
from results.runs.store import Run
from results.summary.fallback import as_it_recovered
from results.summary.findings import PHASES, seconds_from, table_or_empty, the_run
from results.summary.metrics import usual_checkpoints
from results.tables.schema import RUN_TABLES

TOLERANCE = 0.01  # share of what a curve has risen to at its end: so far it may lie from others and not have parted
PREDICTION = "utilization.predicted"  # the check of the one prediction that is a sum over the window
LATENCY, THROUGHPUT, USEFUL = "latency", "throughput", "useful_time"
MOMENTS = {
    "faults": "planned_ns",
    "recoveries": "death_ns",
    "checkpoints": "completed_ns",
    "partition_recoveries": "death_ns",
    "query_recoveries": "death_ns",
    "copies": "at_ns",
    "output_logs": "at_ns",
    "tentative": "window_start_ns",
}  # tables whose rows are moments, not seconds
# what runs whose tables or experiment are no good here raise
UNUSABLE = (BadInput, Damaged, FileNotFoundError, LookupError, NotEnough, TypeError, ValueError)
STRUCK = {"replayed_recoveries": "struck_s"}


@dataclass(frozen=True)
class Cause:
    """Where to look: a table, a second from the opening of the window, and in words what happens there."""

    table: str
    second: float
    words: str

    @property
    def in_its_table(self) -> str:
        """Such as "table useful_time: from second 120 on there is less useful time than replayed, ..."."""
        return f"table {self.table}: {self.words}"


@dataclass(frozen=True)
class RunCause:
    """Where one of the judged runs parts from its baseline."""

    run_id: str
    cause: Cause

    @property
    def words(self) -> str:
        """Such as "night-16, table throughput: from second 120 on it is outside of its baseline, ..."."""
        return f"{self.run_id}, {self.cause.in_its_table}"


def parts_from_prediction(run: Run, check: str) -> Cause | None:
    """Where a run leaves the model that a check holds it against; None if that is not known.

    For utilization this is a second from which on the two differ for good. Other checks hold single rows against a
    model (`results.checks.check.Parting`): then it is the row that is furthest from it.
    """
    parting = PARTINGS.get(check)
    try:
        if check == PREDICTION:
            return parts_from_model(run)
        return None if parting is None else _worst_row(run, *parting)
    except UNUSABLE:
        return None


def _worst_row(run: Run, check: Check, parting: Parting) -> Cause | None:
    experiment = as_it_recovered(spec.validate(run.experiment()), the_run(run))
    rows = check.subject(Evidence(run, experiment)).reset_index(drop=True)
    worst, moments = rows[parting.by].astype("float64").idxmax(), seconds_of(run, check.table, rows)
    if moments is None:
        return None
    second = float(moments.loc[worst])
    return Cause(check.table, second, f"second {second:.0f}: {parting.words(rows.loc[worst])}")


def parts_from_model(run: Run) -> Cause | None:
    """Where measured useful time leaves that of the replay for good; None if it does not, or nothing was replayed.

    The words name the fault that differs most in this direction.
    """
    rows = table_or_empty(run, USEFUL)
    if len(rows) < 2:
        return None
    measured, replayed = (rows[f"{name}_s"].astype("float64").to_numpy() for name in ("measured", "replayed"))
    allowed_s = TOLERANCE * float(rows["second"].iat[-1])
    at = _last_within(np.abs(measured - replayed) <= allowed_s)
    if at is None:
        return None
    second, ends_s = float(rows["second"].iat[at]), float(measured[-1] - replayed[-1])
    less = "less" if ends_s < 0 else "more"
    by = significant(abs(ends_s))
    words = f"from second {second:.0f} on there is {less} useful time than replayed, at the end by {by} s"
    return Cause(USEFUL, second, "; ".join(filter(None, [words, _worst_fault(run, ends_s)])))


def _worst_fault(run: Run, ends_s: float) -> str | None:
    """The fault whose outage, other than replayed, took or left most of that time."""
    rows = table_or_empty(run, "replayed_recoveries")
    cost_s = -np.sign(ends_s) * rows["difference_s"].astype("float64")
    if rows.empty or cost_s.max() <= 0:
        return None
    worst = rows.loc[cost_s.idxmax()]
    at, by_s = significant(worst["struck_s"]), float(worst["difference_s"])
    more = "less" if by_s < 0 else "more"
    return f"the fault at {at} s differs most from the replay: it cost {significant(abs(by_s))} s {more}"


def parts_from_baseline(run: Run, baseline: Sequence[Run], metric: str) -> Cause | None:
    """Where a run leaves what runs of its baseline had, as far as this metric is concerned; None if it does not.

    Runs under the same seed have the same faults: if there are any of them, only those are compared.
    """
    look = LOOKS.get(metric)
    try:
        if metric == "model_error":
            return parts_from_model(run)
        return None if look is None or not baseline else look(run, _of_its_seed(run, baseline))
    except UNUSABLE:
        return None


def causes_of_worse(
    candidates: Iterable[str], baseline: Iterable[str], rows: Iterable[Mapping[str, Any]]
) -> dict[str, RunCause]:
    """By metric that became worse, as rows of the table `regression` say: the newest candidate that parts, and where.

    Runs that are gone meanwhile are left out.
    """
    worse = [row["metric"] for row in rows if row["verdict"] == Change.WORSE]
    if not worse:
        return {}
    others = [store.ReadOnce.of(run) for run in _readable(baseline)]
    judged = sorted(_readable(candidates), key=lambda run: run.known_status().started_ns, reverse=True)
    found: dict[str, RunCause] = {}
    for run, metric in product(judged, worse):
        cause = None if metric in found else parts_from_baseline(run, others, metric)
        if cause:
            found[metric] = RunCause(run.run_id, cause)
    return found


def _readable(run_ids: Iterable[str]) -> Iterator[Run]:
    for run_id in run_ids:
        with suppress(BadInput):
            yield store.readable(run_id)


def _of_its_seed(run: Run, baseline: Sequence[Run]) -> Sequence[Run]:
    def seed(each: Run) -> int | None:
        row = the_run(each)
        return None if row is None else int(row["seed"])

    same = [each for each in baseline if seed(each) == seed(run)]
    return same or baseline


def seconds_of(run: Run, table: str, rows: pd.DataFrame) -> pd.Series | None:
    """When each row of a table was [s from the opening of the window]; None for a table without such a column."""
    if table in MOMENTS:
        row = the_run(run)
        return None if row is None else seconds_from(int(row["window_start_ns"]), rows[MOMENTS[table]])
    name = STRUCK.get(table, "second")
    return rows[name].astype("float64") if name in rows else None


def _curve(table: str, column: str, *, summed: bool) -> Callable[[Run, Sequence[Run]], Cause | None]:
    """Compare a curve over the window; `summed` for one whose table has what each second adds."""
    unit = RUN_TABLES[table].by_name[column].unit

    def values(run: Run) -> pd.Series:
        rows = table_or_empty(run, table).drop_duplicates("second")  # a damaged table may have a second twice
        found = rows.set_index(rows["second"].astype(int))[column].astype("float64")
        return found.cumsum() if summed else found

    def look(run: Run, baseline: Sequence[Run]) -> Cause | None:
        own = values(run)
        others = pd.DataFrame({number: values(each) for number, each in enumerate(baseline)}).reindex(own.index).ffill()
        others = others.dropna(axis=1, how="all")
        if own.empty or others.empty:
            return None
        slack = TOLERANCE * float(others.iloc[-1].max())
        within = (own >= others.min(axis=1) - slack) & (own <= others.max(axis=1) + slack)
        at = _last_within(within.to_numpy())
        if at is None:
            return None
        second, ends, usual = float(own.index[at]), float(own.iat[-1]), float(others.iloc[-1].median())
        sums = f"{significant(ends)} {unit} instead of {significant(usual)} ({table}.{column})"
        words = f"from second {second:.0f} on it is outside of its baseline, at the end {sums}"
        return Cause(table, second, words)

    return look


def _first_beyond(
    table: str, column: str, rows_of: Callable[[Run], pd.DataFrame] | None = None
) -> Callable[[Run, Sequence[Run]], Cause | None]:
    """Look for the first row with a higher value than any row of the baseline has.

    `rows_of` takes those of the table that the metric counts; without it all of them count.
    """
    counted = rows_of or (lambda run: table_or_empty(run, table))

    def look(run: Run, baseline: Sequence[Run]) -> Cause | None:
        rows = counted(run)
        known = [counted(each)[column].max() for each in baseline]
        usual = max((float(value) for value in known if pd.notna(value)), default=np.nan)
        moments = seconds_of(run, table, rows)
        beyond = rows[column].astype("float64") > usual
        if moments is None or not beyond.any():
            return None
        at = moments[beyond].idxmin()
        value, most = significant(float(rows.loc[at, column])), significant(usual)
        name = column.removesuffix("_s").replace("_", " ")
        words = f"{name} is {value} s there, and at most {most} s in its baseline"
        return Cause(table, float(moments.loc[at]), f"second {moments.loc[at]:.0f}: {words}")

    return look


def _from_single_faults(run: Run) -> pd.DataFrame:
    """The recoveries that metric `restart_s` is of: further faults make a restart longer."""
    rows = table_or_empty(run, "recoveries")
    return rows[rows["faults"] == 1]


def _last_within(within: np.ndarray) -> int | None:
    """The position after the last one that is within; None if the last one is, or none."""
    if within[-1]:
        return None
    return int(np.flatnonzero(within)[-1]) + 1 if within.any() else 0


PARTINGS = {check.name: (check, check.parting) for check in CHECKS if check.parting}
LOOKS: dict[str, Callable[[Run, Sequence[Run]], Cause | None]] = {
    "utilization": _curve(USEFUL, "measured_s", summed=False),
    "service_rate": _curve(THROUGHPUT, "committed_records", summed=True),
    "p99_latency_s": _first_beyond(LATENCY, "p99_s"),
    "checkpoint_s": _first_beyond("checkpoints", "checkpoint_s", usual_checkpoints),
    **{f"{phase}_s": _first_beyond("recoveries", f"{phase}_s") for phase in PHASES},
    "restart_s": _first_beyond("recoveries", "restart_s", _from_single_faults),
}
