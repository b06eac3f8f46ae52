"""How results look on a page: the cells of a table, the line of a run, its headline figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pandas as pd

from experiments.wording import significant
from results.damage import Damaged
from results.runs.store import Run
from results.summary.index import IndexRow
from results.tables.columns import MOMENT
from results.tables.comparison import COMPARISON_TABLES
from results.tables.schema import RUN_TABLES
from results.verdict import WORST_FIRST, Verdict
from results.views import recommended as views
from results.views.causes import UNUSABLE, Cause, parts_from_model, seconds_of

ROWS_SHOWN, ROWS_AROUND = 50, 15
PREDICTION = "utilization.predicted"  # the check of the model's prediction
MISSING = "\N{EN DASH}"
TABLES = RUN_TABLES | COMPARISON_TABLES
OF_THE_STATUS = {"machine": "Machine", "digest": "Experiment's digest"}  # details that are in no table
DETAILS = (
    *("experiment", "machine", "digest", "workload", "engine", "protocol", "recovery", "trigger", "driver", "workers"),
    *("depth", "seed", "window_s", "checkpoint_interval_s", "failure_rate", "service_rate", "load_rate"),
    *("sustainable_rate", "unsustainable_rate", "search_end", "utilization_by_records", "message_overhead"),
    *("copies_cpu_share", "checkpoint_cpu_share"),
)
NOT_OF_THE_TESTBED = ("trigger",)


@dataclass(frozen=True)
class ShownCell:
    """One value of a table: its text, and what the text leaves out."""

    text: str
    exact: str = ""


@dataclass(frozen=True)
class ShownHead:
    """The head of a column: its label with the unit of its cells, what the column is, whether its cells are numbers."""

    text: str
    meaning: str
    numeric: bool


@dataclass(frozen=True)
class ShownTable:
    """The first rows of a result table, ready to be printed."""

    name: str
    heads: list[ShownHead]
    rows: list[list[ShownCell]]
    count: int
    damage: str | None = None  # why it cannot be shown


@dataclass(frozen=True)
class ShownRecommendation:
    """What a run advises: the rows, the option that follows them (else `undecided`), and the models behind them."""

    rows: list[views.Row]
    option: str | None
    models: list[str]
    undecided: str = views.UNDECIDED


def recommended(run: Run) -> ShownRecommendation | None:
    """What a run advises; None if it advises nothing."""
    found = views.recommendation_of(run)
    return None if found is None else ShownRecommendation(views.rows(found), views.option(found), views.models())


def details(row: IndexRow) -> list[tuple[str, str]]:
    """What was run, as labels and values."""
    known = row.facts | {"experiment": row.experiment, "machine": row.machine, "digest": row.experiment_digest}
    hidden = NOT_OF_THE_TESTBED if known.get("protocol") else ()
    shown = [(detail_label(name), known.get(name)) for name in DETAILS if name not in hidden]
    times = [("Started (UTC)", time_text(row.started_ns)), ("Ended (UTC)", time_text(row.ended_ns))]
    return [(label, cell("", value).text) for label, value in shown if value is not None] + times


def detail_label(name: str) -> str:
    """What one of `DETAILS` is called; for those of the table `runs`, with the unit."""
    return OF_THE_STATUS.get(name) or RUN_TABLES["runs"].by_name[name].heading


def tables(run: Run) -> list[ShownTable]:
    """Every table that the run has, in the order of the schema, cut to the first rows."""
    return [_table(run, name) for name in RUN_TABLES if run.has(name)]


def rows_around(run: Run, name: str, second: float) -> ShownTable | None:
    """The rows of a table that are nearest to a second of the window; None for a table without times."""
    try:
        rows = run.table(name)
        moments = seconds_of(run, name, rows)
    except (Damaged, FileNotFoundError) as error:
        return ShownTable(name, [], [], 0, str(error))
    if moments is None:
        return None
    nearest = (moments - second).abs().sort_values(kind="stable").index[:ROWS_AROUND]
    chosen = rows.loc[moments.loc[nearest].sort_values(kind="stable").index]
    cells = [
        [cell(column, value) for column, value in zip(chosen.columns, row, strict=True)]
        for row in chosen.itertuples(index=False, name=None)
    ]
    return ShownTable(name, [head(name, column) for column in chosen.columns], cells, len(rows))


def causes(run: Run, judged: list[dict[str, Any]]) -> dict[str, Cause]:
    """For each failed check of a prediction, where the run parts from its model; nothing where that is not known."""
    failed = [row["check"] for row in judged if row["verdict"] == Verdict.FAIL and row["check"] == PREDICTION]
    try:
        found = parts_from_model(run) if failed else None
    except UNUSABLE:
        found = None
    return dict.fromkeys(failed, found) if found else {}


def verdicts(run: Run) -> list[dict[str, Any]]:
    """The rows of the verdicts table, the worst first; empty if nothing was checked."""
    if not run.has("verdicts"):
        return []
    return sorted(_rows(run.table("verdicts")), key=lambda row: WORST_FIRST.index(row["verdict"]))


def shown_plots(names: Iterable[str]) -> list[str]:
    """One file for each plot: the SVG where there are both that and a PNG."""
    by_plot = {name.rpartition(".")[0]: name for name in sorted(names)}  # .svg sorts after .png
    return list(by_plot.values())


def plot_title(name: str) -> str:
    """A plot's file name as words."""
    return PurePosixPath(name).stem.replace("-", " ").replace("_", " ").capitalize()


def time_text(time_ns: int | None) -> str:
    """A time [ns since the epoch] as UTC to the millisecond."""
    if time_ns is None:
        return MISSING
    seconds, rest_ns = divmod(int(time_ns), 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest_ns // 1_000_000:03d}"


def number_text(value: float | None, digits: int = 3) -> str:
    """A figure with a fixed number of decimals, or a dash where nothing was measured."""
    return MISSING if value is None else f"{value:,.{digits}f}"


def figure_text(value: float | None, unit: str = "") -> str:
    """A figure to three digits with its unit, or a dash where nothing was measured."""
    return MISSING if value is None else f"{significant(value)} {unit}".rstrip()


def cell(column: str, value: Any) -> ShownCell:
    """Print one value: times as UTC, reals to three digits (exact value kept), nulls as a dash."""
    if value is None or value is pd.NA:
        return ShownCell(MISSING, "not measured")
    if isinstance(value, bool):
        return ShownCell("yes" if value else "no")
    if column.endswith("_ns"):
        return ShownCell(time_text(value), f"{value} ns")
    if isinstance(value, float):
        return ShownCell(significant(value), repr(value))
    return ShownCell(str(value))


def head(table: str, name: str) -> ShownHead:
    """The head of a column of a result table, as its schema has it; of one that the schema lacks, only the name."""
    column = TABLES[table].by_name.get(name)
    if column is None:
        return ShownHead(name, "not in the schema of this version", False)
    text = f"{column.label} (UTC)" if column.unit == MOMENT else column.heading  # cells show a moment as a date
    return ShownHead(text, f"{name}: {column.description}".replace("`", ""), column.is_number)


def _table(run: Run, name: str) -> ShownTable:
    try:
        found, count = run.head(name, ROWS_SHOWN)
    except (Damaged, FileNotFoundError) as error:
        return ShownTable(name, [], [], 0, str(error))
    rows = [
        [cell(column, value) for column, value in zip(found.columns, row, strict=True)]
        for row in found.itertuples(index=False, name=None)
    ]
    return ShownTable(name, [head(name, column) for column in found.columns], rows, count)


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {name: None if value is pd.NA else value for name, value in row.items()} for row in frame.to_dict("records")
    ]
