"""The data of a run's charts as plain numbers and texts, for every page and format that draws them.

Moments and spans are in seconds from the start of the measurement window. A chart is None where the run lacks what it
shows; a value is None where it was not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from experiments.wording import significant
from results.damage import Damaged
from results.runs.store import Run
from results.summary.availability import availability
from results.summary.findings import (
    BETWEEN,
    EXECUTOR,
    NO_KNOWN_FAULT,
    PHASES,
    ModelInputs,
    advice,
    ledger_seconds,
    model_inputs,
    number,
    seconds_from,
    table_or_empty,
    the_run,
    timed_faults,
    timed_recoveries,
    utilizations,
)
from results.tables.schema import LedgerClass
from results.views.tentative import tentative_spans, tentative_windows
from results.views.time_axis import commit_rate, phase_spans

MOST_POINTS = 1200  # per line: more cannot be told apart on a page
CURVE_POINTS = 400
PERCENTILES = ("p50_s", "p99_s", "p999_s")


def charts(run: Run) -> dict[str, Any]:
    """Every chart of a run, by name; without those whose tables are damaged, which the tables themselves tell."""
    drawn = {
        "utilization": utilization,
        "useful_time": useful_time,
        "timeline": timeline,
        "ledger": ledger,
        "recoveries": recoveries,
        "availability": available_queries,
    }
    return {name: _unless_damaged(draw, run) for name, draw in drawn.items()}


def _unless_damaged(draw: Callable[[Run], dict[str, Any] | None], run: Run) -> dict[str, Any] | None:
    try:
        return draw(run)
    except Damaged:
        return None


def utilization(run: Run) -> dict[str, Any] | None:
    """U by eq. 10 over the checkpoint interval T, T*, and what was measured and predicted at the T that was run."""
    inputs, found, best = model_inputs(run), utilizations(run), advice(run)
    if inputs is None:
        return None
    grid = intervals_s(inputs, None if best is None else best.optimal_interval_s)
    optimum = None if best is None else {"interval_s": best.optimal_interval_s, "expected": best.optimal_expected}
    return {
        "intervals_s": grid.tolist(),
        "expected": _listed(np.asarray(inputs.at(grid))),
        "run": {"interval_s": inputs.interval_s, "measured": found.measured, "predicted": found.predicted}
        | {"low": found.low, "high": found.high},
        "optimum": optimum,
    }


def intervals_s(inputs: ModelInputs, optimal_interval_s: float | None) -> np.ndarray:
    """Checkpoint intervals T to draw the model over [s]: from just above the checkpoint's cost to well beyond T*."""
    marked = [inputs.interval_s] + ([] if optimal_interval_s is None else [optimal_interval_s])
    return np.geomspace(max(1.05 * inputs.checkpoint_cost_s, min(marked) / 20), 12 * max(marked), CURVE_POINTS)


def timeline(run: Run) -> dict[str, Any] | None:
    """Throughput, lag and latency by second, with faults, outages and checkpoints, and with tentative output if any.

    `committed` is that of `commit_rate`, `phases` are those of recoveries, without overlap.
    """
    throughput, latency, facts = table_or_empty(run, "throughput"), table_or_empty(run, "latency"), the_run(run)
    if throughput.empty or facts is None:
        return None
    step_s = _step_s(throughput)
    rows = thinned(throughput.assign(committed_rate=commit_rate(run, throughput)), step_s=step_s)
    waits = thinned(latency, "max", step_s)
    return {
        "window_s": float(facts["window_s"]),
        "second": _listed(rows["second"]),
        "committed": _listed(rows["committed_rate"]),
        **{name: _listed(rows[f"{name}_records"]) for name in ("due", "lag")},
        "latency": {"second": _listed(waits["second"]), **{name: _listed(waits[name]) for name in PERCENTILES}},
        "faults": _faults(run),
        "outages": _outages(run, int(facts["window_start_ns"])),
        "phases": [span._asdict() for span in phase_spans(run)],
        "checkpoints": _checkpoints(run, int(facts["window_start_ns"])),
        "tentative": _tentative(run, float(facts["window_s"])),
    }


def useful_time(run: Run) -> dict[str, Any] | None:
    """Useful time from the start of the window to each second, measured and replayed, with the faults."""
    rows = thinned(table_or_empty(run, "useful_time"), "first")
    if rows.empty:
        return None
    columns = {name: _listed(rows[name]) for name in ("second", "measured_s", "replayed_s")}
    return columns | {"faults": _faults(run)}


def ledger(run: Run) -> dict[str, Any] | None:
    """Seconds of each class, and of the whole window."""
    seconds = ledger_seconds(run)
    if seconds is None:
        return None
    return {"window_s": seconds["window"], "seconds": {each.value: seconds[each] for each in LedgerClass}}


def recoveries(run: Run) -> dict[str, Any] | None:
    """The phases of every recovery, by its begin; `executor` is Spark's part of the restart, `totals` are texts."""
    known = timed_recoveries(run)
    if known.empty:
        return None
    begins = zip(known["death_at_s"], known["targets"].fillna(NO_KNOWN_FAULT), strict=True)
    return {
        "names": [f"{at_s:.0f} s  {targets}" for at_s, targets in begins],
        "phases": {phase: _listed(known[f"{phase}_s"]) for phase in PHASES},
        "executor": _listed(known[f"{EXECUTOR}_s"]),
        "totals": recovery_totals(run, known),
    }


def recovery_totals(run: Run, known: pd.DataFrame) -> list[str]:
    """How long each recovery of a run took in all [s], in words: of one that did not end, the least it can be.

    That is at least until the end of the window. `known` are the recoveries (`timed_recoveries`).
    """
    facts, is_over = the_run(run), known["restore_s"].notna()
    totals_s = known[[f"{phase}_s" for phase in PHASES]].astype("float64").sum(axis="columns")
    if facts is not None:
        until_end_s = float(facts["window_s"]) - known["death_at_s"]
        totals_s = totals_s.where(is_over, np.fmax(totals_s, until_end_s))
    return [f"{'' if over else 'more than '}{significant(s)} s" for over, s in zip(is_over, totals_s, strict=True)]


def available_queries(run: Run) -> dict[str, Any] | None:
    """The share of lost queries that are available at each moment when it changes: measured, planned, by the model.

    A share holds from its moment to the next one; None where the model does not tell it. What was lost before the
    window opened is away from the start of the chart.
    """
    found, facts = availability(run), the_run(run)
    if found is None or facts is None:
        return None
    begun_s = (found.first_ns - int(facts["window_start_ns"])) / 1e9
    window_s = float(facts["window_s"])
    turns_s = found.turns_s[found.turns_s > -begun_s]
    moments_s = np.r_[-begun_s, turns_s, max(window_s - begun_s, found.turns_s[-1])]
    return {
        "queries": found.count,
        "at_s": _listed(moments_s + begun_s),
        "never_back": list(found.never_back),
        **{name: _listed(found.share(moments_s, name)) for name in found.back_s},
    }


def tells_queries(run: Run) -> bool:
    """Whether there is a chart of available queries."""
    return _unless_damaged(available_queries, run) is not None


def thinned(rows: pd.DataFrame, how: str = "mean", step_s: int | None = None) -> pd.DataFrame:
    """The numbers of rows by second, with `step_s` seconds in one row, which has the first of them as its `second`.

    By default these are as many as it takes for a chart to show all rows.
    """
    if rows.empty:
        return rows
    step_s = step_s or _step_s(rows)
    rows = rows.select_dtypes("number").astype("float64")
    found = rows.groupby(rows["second"] // step_s).agg(how)
    return found.assign(second=found.index * step_s)


def _step_s(rows: pd.DataFrame) -> int:
    return max(1, -(-int(rows["second"].max() - rows["second"].min()) // MOST_POINTS))


def _faults(run: Run) -> list[dict[str, Any]]:
    told = ("kind", "targets", "cause", "outcome")
    return [
        {"at_s": number(row["planned_at_s" if pd.isna(row["actual_at_s"]) else "actual_at_s"])}
        | {name: str(row[name]) for name in told}
        for _, row in timed_faults(run).iterrows()
    ]


def _outages(run: Run, start_ns: int) -> list[dict[str, float | None]]:
    table = table_or_empty(run, "recoveries")
    moments = {name: _listed(seconds_from(start_ns, table[f"{name}_ns"])) for name in BETWEEN}
    return [dict(zip(moments, row, strict=True)) for row in zip(*moments.values(), strict=True)]


def _checkpoints(run: Run, start_ns: int) -> dict[str, list[float | None]]:
    table = table_or_empty(run, "checkpoints").sort_values("completed_ns")
    return {"at_s": _listed(seconds_from(start_ns, table["completed_ns"])), "took_s": _listed(table["checkpoint_s"])}


def _tentative(run: Run, window_s: float) -> dict[str, Any] | None:
    windows = tentative_windows(run)
    if not windows["accuracy"].notna().any():
        return None
    numbers = ("end_s", "first_s", "corrected_s", "accuracy", "predicted", "exact")
    return {
        "spans": [list(span) for span in tentative_spans(windows, window_s)],
        "windows": {name: _listed(windows[name]) for name in numbers}
        | {name: windows[name].tolist() for name in ("throughout", "absent")},
    }


def _listed(values: pd.Series | np.ndarray) -> list[float | None]:
    """Numbers as JSON knows them, to a microsecond or a millionth."""
    floats = pd.Series(values).astype("float64").round(6)
    return [float(value) if np.isfinite(value) else None for value in floats]
