"""Rows of the table `regression` as readable sentences, and comparisons for a terminal, of at most 92 columns.

Only the line of a run's id may be longer.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.wording import signed
from results.regression.change import Change
from results.regression.history import HistoryRow
from results.regression.named_runs import JudgedRuns, RunsSideBySide
from results.regression.records import RecordedComparison
from results.summary.findings import figure_or_dash, number
from results.summary.metrics import METRICS, Scale

MARKS = {Change.WORSE: "✗", Change.UNKNOWN: "?", Change.BETTER: "✓", Change.SAME: "="}
PINS_PASSED_OVER = "baselines.yaml pins no run that can be compared with these, so others are their baseline"
WIDTH, NAMES, CELL, DEEP = 92, 21, 12, 13
BESIDE = 5  # runs whose columns fit beside names and units

Row = Mapping[str, Any]
Where = Mapping[str, str]  # by metric: which run parts from its baseline, and where


def sentence(row: Row) -> str:
    """Such as "worse: service_rate 4,410 records/s instead of 5,200, -15.2 % (-19.1 to -11.0 %)"."""
    unit = f" {row['unit']}" if row["unit"] else ""
    medians = f"{figure_or_dash(row['candidate_median'])}{unit} instead of {figure_or_dash(row['baseline_median'])}"
    return ", ".join(filter(None, [f"{row['verdict']}: {row['metric']} {medians}", effect(row)]))


def lines(rows: Iterable[Row], where: Where) -> list[str]:
    """One line for each metric, for a terminal: verdict, medians of the runs and of their baseline, effect.

    A long reason for an unknown verdict takes further lines, and so does where a run parts from its baseline.
    """
    return [line for row in rows for line in _line(row) + _below(where.get(row["metric"], ""))]


def _line(row: Row) -> list[str]:
    text = (
        f"  {MARKS[row['verdict']]} {row['verdict']:8} {row['metric']:19}"
        f"{figure_or_dash(row['candidate_median']):>9} {figure_or_dash(row['baseline_median']):>9} {row['unit']:10}"
        f"{row['why'] or effect(row)}"
    )
    return _wrapped(text, indent=DEEP)


def _below(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=" " * DEEP, subsequent_indent=" " * DEEP)


def effect(row: Row) -> str:
    """Such as "-15.2 % (-19.1 to -11.0 %)", or of a count "+3 at the most"; nothing if none was found."""
    values = [number(row[name]) for name in ("effect", "low", "high")]
    if values[0] is None:
        return ""
    if row["scale"] == Scale.COUNT:
        return f"{values[0]:+,.0f} at the most" if values[0] else ""
    times, unit = (100, " %") if row["scale"] == Scale.RATIO else (1, "")
    found, low, high = ("any" if value is None else signed(times * value) for value in values)
    return f"{found}{unit} ({low} to {high}{unit})"


def report(comparison: RecordedComparison, rows: Iterable[Row], where: Iterable[Where]) -> str:
    """A recorded regression for a terminal; `where` of each of its experiments."""
    parts = [f"{comparison.verdict} ({comparison.regression_id})"]
    rows = list(rows)
    for entry, parted in zip(comparison.experiments, where, strict=True):
        own = [row for row in rows if entry.has(row)]
        counts = f"{len(entry.candidates)} runs against {len(entry.baseline)}"
        pinned = " that were pinned" if entry.pinned else ""
        head = f"{entry.experiment}: {entry.verdict}, {counts}{pinned}, on {entry.machine}"
        notes = _wrapped(PINS_PASSED_OVER) if PINS_PASSED_OVER in entry.sentences else []
        parts.append("\n".join([*_wrapped(head), *notes, *lines(own, parted)]))
    return "\n\n".join(parts)


def judged(found: JudgedRuns, where: Where) -> str:
    """Runs judged by a baseline, for a terminal."""
    rows = [one.row() for one in found.judgements]
    return "\n".join([found.verdict, *lines(rows, where), *_warnings(found.differ)])


def columns(found: RunsSideBySide) -> str:
    """Runs side by side, one column each, for a terminal: a table for every few of them."""
    runs = found.runs
    heads = [f"{number:>3}  {_named(run)}" for number, run in enumerate(runs, 1)]
    blocks = [(first, runs[first : first + BESIDE]) for first in range(0, len(runs), BESIDE)]
    tables = [line for first, some in blocks for line in ("", *_table(some, first))]
    together = [] if found.pooled is None else ["", *_wrapped(f"pooled utilization: {found.pooled.sentence}")]
    return "\n".join([*heads, *tables, *together, *_warnings(found.differ)])


def _named(run: HistoryRow) -> str:
    return f"{run.run_id} (published)" if run.is_published else run.run_id


def _table(runs: Sequence[HistoryRow], before: int) -> list[str]:
    """What these runs measured, each below its number, which follows those of the runs `before`."""
    numbers = "".join(f"{number:>{CELL}}" for number in range(before + 1, before + 1 + len(runs)))
    rows = [
        f"  {metric.name:{NAMES - 2}}"
        + "".join(f"{figure_or_dash(run.metrics.get(name)):>{CELL}}" for run in runs)
        + f" {metric.unit}"
        for name, metric in METRICS.items()
        if any(name in run.metrics for run in runs)
    ]
    return [" " * NAMES + numbers, *(row.rstrip() for row in rows)]


def _wrapped(text: str, indent: int = 2) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * indent)


def _warnings(differ: Iterable[str]) -> list[str]:
    return [f"the runs differ in their {name}" for name in differ]
