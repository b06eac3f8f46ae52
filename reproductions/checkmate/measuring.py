"""From the runs of a measured table or figure of `checkmate` to its tidy table; how protocols look in its plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.engines import ProtocolName
from experiments.spec import Experiment
from experiments.workloads import NexmarkSpec
from reproductions.checkmate.experiments import PROTOCOLS, QUERIES, SHORT
from reproductions.measured import Cell, cells, expected_s
from reproductions.reproduction import Computed, Progress, Reproduction, ReproductionCheck, Size
from results.checks.rules import NotEnough
from results.views.style import BLUE, GREEN, GREY, ORANGE, WIDTH_IN

Row = dict[str, Any]
NAMES = tuple(SHORT[protocol] for protocol in PROTOCOLS)
NONE, (COOR, UNC, CIC) = SHORT[ProtocolName.NONE], NAMES
LOOKS: dict[str, dict[str, Any]] = {
    NONE: {"color": GREY, "marker": "v"},
    COOR: {"color": BLUE, "marker": "o"},
    UNC: {"color": ORANGE, "marker": "s"},
    CIC: {"color": GREEN, "marker": "D"},
}
REPLICATES = Size("runs of each cell", default=1, paper=1)


class SimulatedRows(NamedTuple):
    """What is simulated beside what is measured: rows of the same table, and the checks that judge them alone."""

    rows: Callable[[Progress], list[Row]]
    checks: tuple[ReproductionCheck, ...]


def measured(
    id: str,
    what: str,
    needs: Callable[[int], Sequence[Experiment]],
    of_cell: Callable[[Cell], Iterable[Row]],
    plot: Callable[[pd.DataFrame], Figure],
    checks: tuple[ReproductionCheck, ...],
    finish: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table,
    simulation: SimulatedRows | None = None,
    about: Callable[[Cell], Row] | None = None,
) -> Reproduction:
    """A reproduction whose table has the rows that `of_cell` takes from the run of each experiment it needs.

    An experiment without a run has one row, of which nothing but the cell is known: what `about` tells, by default
    `facts`. That has replicate (the seed), run_id and `simulated`, which is false of all that was measured. The rows of
    `simulation` need no runs, so that with it there is a table in any case. `finish` has the last word on the table.
    """

    def compute(size: int, tell: Progress) -> pd.DataFrame:
        found = cells(needs(size))
        taken = [list(of_cell(cell)) if cell.run else [] for cell in found]
        if not simulation and not any(cell.run for cell in found):
            raise NotEnough(_none_of([cell.experiment for cell in found]))
        if not simulation and not any(taken):
            raise NotEnough("nothing of it was measured in any of its runs")
        known = about or facts
        rows = [known(cell) | row for cell, rows in zip(found, taken, strict=True) for row in rows or [{}]]
        return finish(pd.DataFrame([*rows, *(simulation.rows(tell) if simulation else ())]))

    if simulation:
        checks = (*(_of_measured(check, needs) for check in checks), *map(_of_simulated, simulation.checks))
    return Reproduction(id, what, compute=compute, plot=plot, checks=checks, size=REPLICATES, needs=needs)


def _none_of(experiments: Sequence[Experiment]) -> str:
    """How many runs there are to do, and how long that takes as far as it is known before them."""
    none = f"none of its {len(experiments)} runs has been done on this machine with tables of this version"
    return f"{none}; they take about {expected_s(experiments) / 60:.0f} min"


def _of_measured(check: ReproductionCheck, needs: Callable[[int], Sequence[Experiment]]) -> ReproductionCheck:
    """The check, of the measured rows alone."""

    def part(table: pd.DataFrame) -> pd.DataFrame:
        rows = table[~table["simulated"]]
        if rows["run_id"].isna().all():
            raise NotEnough(_none_of(needs(rows["replicate"].nunique())))
        return rows

    return _of_part(check, part)


def _of_simulated(check: ReproductionCheck) -> ReproductionCheck:
    """The check, of the simulated rows alone, and called so."""
    of_part = _of_part(check, lambda table: table[table["simulated"]])
    return replace(of_part, name=f"simulated.{check.name}", expected=lambda e: f"simulated: {check.expected(e)}")


def _of_part(check: ReproductionCheck, part: Callable[[pd.DataFrame], pd.DataFrame]) -> ReproductionCheck:
    def subject(evidence: Computed) -> pd.DataFrame:
        return check.subject(replace(evidence, table=part(evidence.rows())))

    return replace(check, subject=subject)


def facts(cell: Cell) -> Row:
    """What is known of a cell, whether it has been run or not."""
    experiment = cell.experiment
    workload = experiment.workload
    return {
        "query": (workload.query if isinstance(workload, NexmarkSpec) else workload.name).value,
        "protocol": SHORT[experiment.engine.protocol_run],
        "workers": experiment.cluster.workers,
        "replicate": experiment.seed,
        "run_id": cell.run.run_id if cell.run else None,
        "simulated": False,
    }


def complete(rows: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The rows, if there are any and these columns have a value in each; else raises `NotEnough`, naming the cells."""
    if rows.empty:
        raise NotEnough("there are no rows to judge")
    for column in columns:
        if column not in rows or rows[column].isna().all():
            raise NotEnough(f"no run has measured {column}")
        lacking = rows[rows[column].isna()]
        if len(lacking):
            names = [f"{row.query} {row.protocol} {row.workers}w #{row.replicate}" for row in lacking.itertuples()]
            raise NotEnough(f"{column} is not known of {', '.join(dict.fromkeys(names))}")
    return rows


def by_query(table: pd.DataFrame, query: str) -> pd.DataFrame:
    """The rows of one query."""
    return table[table["query"] == query]


def draw_by_workers(table: pd.DataFrame, value: str, error: str | None = None) -> Figure:
    """A panel for each number of workers in the table, first the measured ones; `error` is drawn to both sides."""
    kinds = table[["simulated", "workers"]].drop_duplicates().sort_values(["simulated", "workers"])
    figure = Figure(figsize=(WIDTH_IN, 4.4), layout="constrained")
    axes = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for panel, (is_simulated, workers) in zip(axes, kinds.itertuples(index=False), strict=True):
        rows = table[(table["simulated"] == is_simulated) & (table["workers"] == workers)]
        draw_by_query(panel, rows, value, error)
        panel.set_title(f"{workers} worker{'s' * (workers > 1)}{', simulated' * is_simulated}", fontsize=9)
    return figure


def draw_by_query(axes: Axes, table: pd.DataFrame, value: str, error: str | None = None) -> None:
    """A mark for each row, queries along the x axis and protocols side by side; `error` is drawn to both sides."""
    draw_by_protocol(axes, table, [list(QUERIES).index(query) for query in table["query"]], value, error)
    axes.set_xticks(range(len(QUERIES)), [query.upper() for query in QUERIES])
    axes.set_xlim(-0.5, len(QUERIES) - 0.5)


def draw_by_protocol(
    axes: Axes, table: pd.DataFrame, places: Sequence[float], value: str, error: str | None = None
) -> None:
    """A mark for each row at its place on the x axis, protocols side by side; hollow are those that are simulated."""
    names = [name for name in LOOKS if name in set(table["protocol"])]
    at = pd.Series(places, index=table.index, dtype=float)
    for number, name in enumerate(names):
        rows = table[table["protocol"] == name]
        shift = (number - (len(names) - 1) / 2) * 0.18
        look = {"ls": "none", "capsize": 3, "ms": 6, "label": name} | LOOKS[name]
        look |= {"mfc": "none"} if rows["simulated"].all() else {}
        axes.errorbar(at[rows.index] + shift, rows[value].astype(float), yerr=rows[error] if error else None, **look)
