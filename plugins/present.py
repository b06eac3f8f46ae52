"""How results look on a page: the cells of a table, the line of a run, its headline figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pandas as pd

from results.findings import Utilization, utilizations
from results.schema import REAL, TABLES, WHOLE
from results.store import Run
from results.verdict import Verdict

ROWS_SHOWN = 200
WORST_FIRST = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS)
MISSING = "\N{EN DASH}"
DETAILS = {
    "experiment": "Experiment",
    "workload": "Workload",
    "engine": "Engine",
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
    "utilization_by_records": "Utilization by records",
}


@dataclass(frozen=True)
class Cell:
    """One value of a table: its text, and what the text leaves out."""

    text: str
    exact: str = ""


@dataclass(frozen=True)
class Table:
    """The head of a result table, ready to be printed."""

    name: str
    numeric: dict[str, bool]  # by column
    rows: list[list[Cell]]
    count: int


@dataclass(frozen=True)
class Summary:
    """What the list shows of one run; figures are None where the run did not get as far as measuring them."""

    run_id: str
    state: str
    started: str
    ended: str
    error: str | None
    dag_run: str | None
    facts: dict[str, Any]
    utilization: Utilization
    verdicts: dict[str, int]

    @property
    def measured(self) -> bool:
        """Whether the run got as far as measuring anything."""
        return "window_s" in self.facts

    @property
    def interval(self) -> str | None:
        """The predicted utilization's interval."""
        low, high = self.utilization.low, self.utilization.high
        return None if low is None or high is None else f"{number_text(low)} to {number_text(high)}"

    @property
    def details(self) -> list[tuple[str, str]]:
        """What was run, as labels and values."""
        known = [(label, self.facts.get(name)) for name, label in DETAILS.items()]
        times = [("Started (UTC)", self.started), ("Ended (UTC)", self.ended)]
        return [(label, cell("", value).text) for label, value in known if value is not None] + times


def summary(run: Run) -> Summary:
    """Read what the list and the head of a run's page show."""
    status = run.status()
    measured = next(iter(_rows(run.table("runs"))), {}) if run.has("runs") else {}
    return Summary(
        run_id=run.run_id,
        state=status["state"],
        started=time_text(status.get("started_ns")),
        ended=time_text(status.get("ended_ns")),
        error=status.get("error"),
        dag_run=status.get("dag_run"),
        facts={"experiment": status.get("experiment")} | measured,
        utilization=utilizations(run),
        verdicts=_verdict_counts(run),
    )


def tables(run: Run) -> list[Table]:
    """Every table that the run has, in the order of the schema, cut to the first rows."""
    return [_table(name, run.table(name)) for name in TABLES if run.has(name)]


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


def cell(column: str, value: Any) -> Cell:
    """Print one value: times as UTC, reals to six digits (exact value kept), nulls as a dash."""
    if value is None or value is pd.NA:
        return Cell(MISSING, "not measured")
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if column.endswith("_ns"):
        return Cell(time_text(value), f"{value} ns")
    if isinstance(value, float):
        return Cell(f"{value:.6g}", repr(value))
    return Cell(str(value))


def _table(name: str, frame: pd.DataFrame) -> Table:
    numeric = {field.name: field.type in (WHOLE, REAL) for field in TABLES[name]}
    head = frame.head(ROWS_SHOWN).itertuples(index=False, name=None)
    rows = [[cell(column, value) for column, value in zip(frame.columns, row, strict=True)] for row in head]
    return Table(name, numeric, rows, len(frame))


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {name: None if value is pd.NA else value for name, value in row.items()} for row in frame.to_dict("records")
    ]


def _verdict_counts(run: Run) -> dict[str, int]:
    counts = Counter(row["verdict"] for row in verdicts(run))
    return {word: counts[word] for word in WORST_FIRST if word in counts}
