"""Rows of `checkmate`'s tables by query, protocol and workers: what a cell is, and how protocols look in the plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.engines import ProtocolName
from experiments.wording import counted
from experiments.workloads.catalogue import NexmarkSpec
from reproductions.checkmate.experiments import PROTOCOLS, QUERIES, SHORT
from reproductions.claims import Ratio, paired_ratio
from reproductions.measured import Cell
from reproductions.measured_rows import Row
from results.checks.rules import NotEnough
from results.views.style import BLUE, GREEN, GREY, ORANGE, WIDTH_IN

NAMES = tuple(SHORT[protocol] for protocol in PROTOCOLS)
NONE, (COOR, UNC, CIC) = SHORT[ProtocolName.NONE], NAMES
LOOKS: dict[str, dict[str, Any]] = {
    NONE: {"color": GREY, "marker": "v"},
    COOR: {"color": BLUE, "marker": "o"},
    UNC: {"color": ORANGE, "marker": "s"},
    CIC: {"color": GREEN, "marker": "D"},
}


def facts(cell: Cell) -> Row:
    """What is known of a cell, whether it has been run or not."""
    experiment = cell.experiment
    workload = experiment.workload
    return {
        "query": (workload.query if isinstance(workload, NexmarkSpec) else workload.name).value,
        "protocol": SHORT[experiment.engine.protocol_run],
        "workers": experiment.cluster.workers,
    } | cell.origin


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


def protocols_ratio(
    rows: pd.DataFrame, value: str, over: str, under: str, alike: Sequence[str] = ("query", "replicate")
) -> Ratio:
    """How many times as much of `value` one protocol has as another, by pairs of runs that differ in nothing else.

    So what queries have in common with each other does not count, and how the pairs differ shows how runs do.
    Raises `NotEnough` as `complete` and `paired_ratio`.
    """
    known = complete(rows[rows["protocol"].isin((over, under))], value)
    return paired_ratio(f"{over} / {under}", known, value, "protocol", over, under, alike)


def draw_by_workers(table: pd.DataFrame, value: str, error: str | None = None) -> Figure:
    """A panel for each number of workers in the table, first the measured ones; `error` is drawn to both sides."""
    kinds = table[["simulated", "workers"]].drop_duplicates().sort_values(["simulated", "workers"])
    figure = Figure(figsize=(WIDTH_IN, 4.4), layout="constrained")
    axes = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for panel, (is_simulated, workers) in zip(axes, kinds.itertuples(index=False), strict=True):
        rows = table[(table["simulated"] == is_simulated) & (table["workers"] == workers)]
        draw_by_query(panel, rows, value, error)
        panel.set_title(workers_told(workers, is_simulated), fontsize=9)
    return figure


def workers_told(workers: int, is_simulated: bool) -> str:
    """The number of workers as the title of a panel, and how far simulated ones can be trusted."""
    told = counted(workers, "worker")
    return f"{told},\nsimulated, not calibrated" if is_simulated else told


def draw_by_query(axes: Axes, table: pd.DataFrame, value: str, error: str | None = None) -> None:
    """A mark for each row, queries along the x axis and protocols side by side; `error` is drawn to both sides.

    Those of NexMark have their places in any case, others that of the table.
    """
    queries = list(dict.fromkeys([*QUERIES, *table["query"]]))
    draw_by_protocol(axes, table, [queries.index(query) for query in table["query"]], value, error)
    axes.set_xticks(range(len(queries)), [query.upper() if query in QUERIES else query for query in queries])
    axes.set_xlim(-0.5, len(queries) - 0.5)


def draw_by_protocol(
    axes: Axes, table: pd.DataFrame, places: Sequence[float], value: str, error: str | None = None
) -> None:
    """A mark for each row at its place on the x axis, protocols side by side; hollow are those that are simulated."""
    names = [name for name in LOOKS if name in set(table["protocol"])]
    at = pd.Series(places, index=table.index, dtype=float)
    for number, name in enumerate(names):
        rows = table[table["protocol"] == name]
        shift = (number - (len(names) - 1) / 2) * 0.18
        look: dict[str, Any] = {"ls": "none", "capsize": 3, "ms": 6, "label": name} | LOOKS[name]
        look |= {"mfc": "none"} if rows["simulated"].all() else {}
        axes.errorbar(at[rows.index] + shift, rows[value].astype(float), yerr=rows[error] if error else None, **look)
