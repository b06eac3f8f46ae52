"""How results look on a page: the cells of a table, the line of a run, its headline figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pandas as pd

from results.damage import Damaged
from results.runs.store import Run
from results.summary.index import IndexRow
from results.tables.schema import REAL, TABLES, WHOLE
from results.verdict import WORST_FIRST

ROWS_SHOWN = 50
MISSING = "\N{EN DASH}"
DETAILS = {
    "experiment": "Experiment",
    "machine": "Machine",
    "digest": "Experiment's digest",
    "workload": "Workload",
    "engine": "Engine",
    "protocol": "Protocol",
    "recovery": "Recovery",
    "trigger": "Trigger",
    "driver": "Cluster",
    "workers": "Workers",
    "depth": "Depth",
    "seed": "Seed",
    "window_s": "Window [s]",
    "checkpoint_interval_s": "Checkpoint interval [s]",
    "failure_rate": "Planned failure rate [1/s]",
    "service_rate": "Service rate [records/s]",
    "load_rate": "Load [records/s]",
    "sustainable_rate": "Sustainable rate [records/s]",
    "unsustainable_rate": "Lowest rate that was not [records/s]",
    "search_end": "What ended the search",
    "utilization_by_records": "Utilization by records",
    "message_overhead": "Bytes sent / bytes of data",
}
NOT_OF_THE_TESTBED = ("recovery", "trigger")  # which has a protocol instead


@dataclass(frozen=True)
class ShownCell:
    """One value of a table: its text, and what the text leaves out."""

    text: str
    exact: str = ""


@dataclass(frozen=True)
class ShownTable:
    """The head of a result table, ready to be printed."""

    name: str
    numeric: dict[str, bool]  # by column
    rows: list[list[ShownCell]]
    count: int
    damage: str | None = None  # why it cannot be shown


def details(row: IndexRow) -> list[tuple[str, str]]:
    """What was run, as labels and values."""
    known = row.facts | {"experiment": row.experiment, "machine": row.machine, "digest": row.experiment_digest}
    hidden = NOT_OF_THE_TESTBED if known.get("protocol") else ()
    shown = [(label, known.get(name)) for name, label in DETAILS.items() if name not in hidden]
    times = [("Started (UTC)", time_text(row.started_ns)), ("Ended (UTC)", time_text(row.ended_ns))]
    return [(label, cell("", value).text) for label, value in shown if value is not None] + times


def tables(run: Run) -> list[ShownTable]:
    """Every table that the run has, in the order of the schema, cut to the first rows."""
    return [_table(run, name) for name in TABLES if run.has(name)]


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
    """A figure to four digits with its unit, or a dash where nothing was measured."""
    if value is None:
        return MISSING
    return f"{f'{value:,.0f}' if abs(value) >= 1000 else f'{value:.4g}'} {unit}".rstrip()


def cell(column: str, value: Any) -> ShownCell:
    """Print one value: times as UTC, reals to six digits (exact value kept), nulls as a dash."""
    if value is None or value is pd.NA:
        return ShownCell(MISSING, "not measured")
    if isinstance(value, bool):
        return ShownCell("yes" if value else "no")
    if column.endswith("_ns"):
        return ShownCell(time_text(value), f"{value} ns")
    if isinstance(value, float):
        return ShownCell(f"{value:.6g}", repr(value))
    return ShownCell(str(value))


def _table(run: Run, name: str) -> ShownTable:
    numeric = {field.name: field.type in (WHOLE, REAL) for field in TABLES[name]}
    try:
        head, count = run.head(name, ROWS_SHOWN)
    except (Damaged, FileNotFoundError) as error:
        return ShownTable(name, {}, [], 0, str(error))
    rows = [
        [cell(column, value) for column, value in zip(head.columns, row, strict=True)]
        for row in head.itertuples(index=False, name=None)
    ]
    return ShownTable(name, {column: numeric.get(column, False) for column in head.columns}, rows, count)


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {name: None if value is pd.NA else value for name, value in row.items()} for row in frame.to_dict("records")
    ]
