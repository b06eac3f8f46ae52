"""Prepares results for pages: the tables of a run, its facts, its verdicts, its headline figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pandas as pd

from experiments.wording import significant
from results.damage import Damaged
from results.runs.store import Run
from results.summary.index import IndexRow
from results.summary.judged_checks import JudgedCheck, judged_checks
from results.tables.schema import RUN_TABLES
from results.verdict import WORST_FIRST, Verdict
from results.views import recommended as views
from results.views.causes import Cause, parts_from_prediction, seconds_of
from results.views.cells import MISSING, ShownCell, ShownHead, cell, column_of, head, time_text

ROWS_SHOWN, ROWS_AROUND = 50, 15
OF_THE_STATUS = {"machine": "Machine", "digest": "Experiment's digest"}  # details that are in no table
LOAD = "load_rate"  # what the experiment asks for, but of a saturating load what the run measured
SETTINGS = (
    *("experiment", "machine", "digest", "workload", "engine", "protocol", "recovery", "trigger", "driver", "workers"),
    *("depth", "seed", "window_s", "checkpoint_interval_s", "failure_rate", LOAD),
)
MEASURED = (
    *("service_rate", "sustainable_rate", "unsustainable_rate", "search_end", "utilization_by_records"),
    *("message_overhead", "copies_cpu_share", "checkpoint_cpu_share"),
)
NOT_OF_THE_TESTBED = ("trigger",)


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
    """What a run advises: the rows, the option that follows them (else a remark on the interval, if there is one), the
    partitions to copy, and the models behind them."""

    rows: list[views.Row]
    option: str | None
    remark: str | None
    partitions: str | None
    copies_option: str | None
    models: list[str]


def recommended(run: Run) -> ShownRecommendation | None:
    """What a run advises; None if it advises nothing."""
    found = views.recommendation_of(run)
    if found is None:
        return None
    told = views.option(found), views.remark(found), views.partitions(found), views.copies_option(found)
    return ShownRecommendation(views.rows(found), *told, views.models(found))


def details(row: IndexRow) -> list[tuple[str, str]]:
    """What was run, and when, as labels and values."""
    hidden = NOT_OF_THE_TESTBED if row.protocol else ()
    times = [("Started (UTC)", time_text(row.started_ns)), ("Ended (UTC)", time_text(row.ended_ns))]
    return _known_details(row, [name for name in SETTINGS if name not in hidden]) + times


def measurements(row: IndexRow) -> list[tuple[str, str]]:
    """What was measured besides the headline figures, as labels and values."""
    return _known_details(row, MEASURED)


def _known_details(row: IndexRow, names: Iterable[str]) -> list[tuple[str, str]]:
    known = row.facts | {"experiment": row.experiment, "machine": row.machine, "digest": row.experiment_digest}
    shown = [(detail_label(name), detail_text(name, known.get(name))) for name in names]
    return [(label, text) for label, text in shown if text != MISSING]


def settings(*, same_experiment: bool) -> list[str]:
    """The details in which runs can differ as to what was run.

    Runs of one experiment had the same load, though a saturating one is measured by each of them anew.
    """
    return [name for name in SETTINGS if name != LOAD or not same_experiment]


def detail_label(name: str) -> str:
    """What one of `SETTINGS` or `MEASURED` is called; for those of the table `runs`, with the unit."""
    return OF_THE_STATUS.get(name) or RUN_TABLES["runs"].by_name[name].heading


def detail_text(name: str, value: Any) -> str:
    """The value of one of `SETTINGS` or `MEASURED`, in the unit of its label; a dash where there is none."""
    return cell(column_of("runs", name), value).text


def details_apart(name: str, values: Sequence[Any]) -> list[str]:
    """The value that each of several runs has, as `detail_text`; in all digits where three make two of them alike."""
    texts = [detail_text(name, value) for value in values]
    if len(set(texts)) == len(set(map(str, values))):
        return texts
    return [str(value) if isinstance(value, float) else text for value, text in zip(values, texts, strict=True)]


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
    return _shown(name, chosen, len(rows))


def causes(run: Run, judged: list[JudgedCheck]) -> dict[str, Cause]:
    """For each failed check of a prediction, where the run parts from its model; nothing where that is not known."""
    failed = [each.check for each in judged if each.verdict is Verdict.FAIL]
    found = {check: parts_from_prediction(run, check) for check in failed}
    return {check: cause for check, cause in found.items() if cause}


def verdicts(run: Run) -> list[JudgedCheck]:
    """The checks of a run, the worst first; empty if nothing was checked."""
    return sorted(judged_checks(run), key=lambda each: WORST_FIRST.index(each.verdict))


def shown_plots(names: Iterable[str]) -> list[str]:
    """One file for each plot: the SVG where there are both that and a PNG."""
    by_plot = {name.rpartition(".")[0]: name for name in sorted(names)}  # .svg sorts after .png
    return list(by_plot.values())


def plot_title(name: str) -> str:
    """A plot's file name as words."""
    return PurePosixPath(name).stem.replace("-", " ").replace("_", " ").capitalize()


def whole_text(value: float | None) -> str:
    """A count, or a clock that ticks in whole seconds, with its thousands grouped; a dash where there is none."""
    return MISSING if value is None else f"{value:,.0f}"


def figure_text(value: float | None, unit: str = "") -> str:
    """A figure to three digits with its unit, or a dash where nothing was measured."""
    return MISSING if value is None else f"{significant(value)} {unit}".rstrip()


def _table(run: Run, name: str) -> ShownTable:
    try:
        found, count = run.head(name, ROWS_SHOWN)
    except (Damaged, FileNotFoundError) as error:
        return ShownTable(name, [], [], 0, str(error))
    return _shown(name, found, count)


def _shown(name: str, rows: pd.DataFrame, count: int) -> ShownTable:
    columns = [column_of(name, column) for column in rows.columns]
    cells = [
        [cell(column, value) for column, value in zip(columns, row, strict=True)]
        for row in rows.itertuples(index=False, name=None)
    ]
    return ShownTable(name, [head(name, column) for column in rows.columns], cells, count)
