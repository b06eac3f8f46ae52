"""Rows of the table `regression` as readable sentences, and comparisons for a terminal, of at most 92 columns.

Only the line of a run's id may be longer.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from experiments.wording import elided, exact, on_one_line, signed
from results.regression.change import Change
from results.regression.history import HistoryRow
from results.regression.named_runs import JudgedRuns, RunsSideBySide
from results.regression.not_measured import lacks
from results.regression.records import RecordedComparison
from results.summary.findings import figure_or_dash, number
from results.summary.metrics import METRICS, Scale

MARKS = {Change.WORSE: "✗", Change.UNKNOWN: "?", Change.BETTER: "✓", Change.SAME: "="}
PINS_PASSED_OVER = "baselines.yaml pins no run that can be compared with these, so others are their baseline"
WIDTH, NAMES, CELL, DEEP = 92, 21, 12, 13
BESIDE = 5  # runs whose columns fit beside names and units
FAILED_NAMED = 2  # failed checks of a run that are named
MOST_FIELDS = 10  # that are named of those in which experiments differ
LONGEST_VALUE = 40  # characters of a field's value
LONGEST_WHOLE = 400  # characters of one that looks like another if it is cut
ELIDED = WIDTH - 5  # characters of a line that is cut; the dots come on top
FAILED = "Failed checks (`aftershock results RUN_ID` tells more)"
MISSING = "Not measured (-)"
MEDIANS = "  median: over the recoveries of a run; of restart_s, over those from a single fault"
FIELDS = "the experiments differ in these fields:"

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
        notes = [line for note in entry.notes for line in _wrapped(note)]
        parts.append("\n".join([*_wrapped(head), *notes, *lines(own, parted)]))
    return "\n\n".join(parts)


def other_speeds(speed: float | None, others: Sequence[float]) -> str:
    """Why runs are left out whose machines were faster or slower than that of the latest run."""
    here, there = figure_or_dash(speed), figure_or_dash(median(others))
    runs = f"{len(others)} run{'s' * (len(others) > 1)}"
    return f"{runs} left out: the machine has speed {here} now, and had {there} then, in pieces of work a second"


def judged(found: JudgedRuns, where: Where) -> str:
    """Runs judged by a baseline, for a terminal."""
    rows = [one.row() for one in found.judgements]

    def told(values: Sequence[Any]) -> str:
        return f"{each_once(values[: found.count])} (baseline: {each_once(values[found.count :])})"

    parts = [found.verdict, *lines(rows, where), *_apart(found.fields, found.differ, told)]
    return "\n".join(map(on_one_line, parts))


def columns(found: RunsSideBySide) -> str:
    """Runs side by side, one column each, for a terminal: a table for every few of them."""
    runs = found.runs
    heads = [f"{number:>3}  {_named(run)}" for number, run in enumerate(runs, 1)]
    failed = [_failed(number, checks) for number, run in enumerate(runs, 1) if (checks := found.failed[run.run_id])]
    blocks = [(first, runs[first : first + BESIDE]) for first in range(0, len(runs), BESIDE)]
    tables = [line for first, some in blocks for line in ("", *_table(some, first))]
    together = [] if found.pooled is None else ["", *_wrapped(f"pooled utilization: {found.pooled.sentence}")]
    parts = [
        *heads,
        *_paragraph([FAILED, *failed] if failed else []),
        *tables,
        *_missing(found),
        *together,
        *_apart(found.fields, found.differ, values_by_run),
    ]
    return "\n".join(map(on_one_line, parts))


def _failed(number: int, checks: Sequence[str]) -> str:
    """The checks that one run failed, on one line."""
    more = len(checks) - FAILED_NAMED
    return elided(f"{number:>3}  {', '.join(checks[:FAILED_NAMED])}{f' and {more} more' if more > 0 else ''}", ELIDED)


def _missing(found: RunsSideBySide) -> list[str]:
    """Why there are dashes in the tables, and what the medians are over."""
    shown = {name for run in found.runs for name in run.metrics}
    medians = [MEDIANS] if any(METRICS[name].of_recoveries for name in shown) else []
    why = [
        f"  {', '.join(each.metrics)} ({runs_at(each.places)}): {each.why}"
        for each in lacks([found.missing[run.run_id] for run in found.runs])
    ]
    lines = [line for each in why for line in _wrapped(each, indent=4)]
    return [*medians, *_paragraph([MISSING, *lines] if lines else [])]


def _apart(
    fields: Mapping[str, Sequence[Any]], differ: Iterable[str], told: Callable[[Sequence[Any]], str]
) -> list[str]:
    """What the runs do not share; of their experiments the most important fields, if they are known."""
    if not fields:
        return _paragraph(_warnings(differ))
    named = [line for path in _most_important(fields) for line in _wrapped(f"  {path}: {told(fields[path])}", indent=4)]
    more = len(fields) - MOST_FIELDS
    others = _warnings(name for name in differ if name != "experiment")
    return _paragraph([*others, FIELDS, *named, *([f"  and {more} more: see --json"] if more > 0 else [])])


def _most_important(fields: Mapping[str, Sequence[Any]]) -> list[str]:
    """The paths of those to name, in order: first those that each experiment has, such as the name of its workload.

    What only some have are mostly the fields of one workload, and its name says as much.
    """
    return sorted(sorted(fields, key=lambda path: None in fields[path])[:MOST_FIELDS])


def _paragraph(some: list[str]) -> list[str]:
    return ["", *some] if some else []


def values_by_run(values: Sequence[Any]) -> str:
    """What each run has in a field, each value once, such as "20 (run 1), null (runs 2, 3)".

    Values that differ only where they are cut are told whole, unless they are very long.
    """
    places: dict[str, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(json.dumps(value, sort_keys=True), []).append(place)
    texts = [value_text(values[where[0]]) for where in places.values()]
    if len({*texts}) < len(texts) and max(map(len, places)) <= LONGEST_WHOLE:
        texts = [*places]
    return ", ".join(f"{text} ({runs_at(where)})" for text, where in zip(texts, places.values(), strict=True))


def each_once(values: Sequence[Any]) -> str:
    """Values of a field, each once, such as "20, null"."""
    return ", ".join(dict.fromkeys(map(value_text, values)))


def value_text(value: Any) -> str:
    """A field's value as JSON, but a text without quotes; a long list is told by its length."""
    if isinstance(value, float):
        return exact(value)
    text = value if isinstance(value, str) else json.dumps(value)
    if isinstance(value, list) and len(text) > LONGEST_VALUE:
        return f"a list of {len(value)}"
    return elided(text, LONGEST_VALUE)


def runs_at(places: Sequence[int]) -> str:
    """The runs at these places, from 0, by their numbers: "run 1", "runs 1, 3"."""
    return f"run{'s' * (len(places) > 1)} {', '.join(str(place + 1) for place in places)}"


def _named(run: HistoryRow) -> str:
    return f"{run.run_id} (published)" if run.is_published else run.run_id


def _table(runs: Sequence[HistoryRow], before: int) -> list[str]:
    """What these runs measured, each below its number, which follows those of the runs `before`."""
    numbers = "".join(f"{number:>{CELL}}" for number in range(before + 1, before + 1 + len(runs)))
    rows = [
        f"  {metric.name:{NAMES - 2}}"
        + "".join(f"{figure_or_dash(run.metrics.get(name)):>{CELL}}" for run in runs)
        + f" {metric.head}"
        for name, metric in METRICS.items()
        if any(name in run.metrics for run in runs)
    ]
    return [" " * NAMES + numbers, *(row.rstrip() for row in rows)]


def _wrapped(text: str, indent: int = 2) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * indent)


def _warnings(differ: Iterable[str]) -> list[str]:
    return [f"the runs differ in their {name}" for name in differ]
