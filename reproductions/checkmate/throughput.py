"""`checkmate`, figure 7: the highest rate that each protocol sustains, over that without checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure

from reproductions.checkmate.experiments import PARALLEL, QUERIES, searched, sustainable_rate
from reproductions.checkmate.measuring import (
    CIC,
    COOR,
    NONE,
    UNC,
    Row,
    by_query,
    complete,
    draw_by_query,
    measured,
)
from reproductions.claims import Ratio, at_least
from reproductions.measured import Cell
from reproductions.reproduction import Check
from results.style import WIDTH_IN

AS_MUCH = 0.9  # a search ends within a tenth, so that less of a difference is none


def sustained(cell: Cell) -> Iterator[Row]:
    """The highest rate that was sustained, and the lowest that was not, if any [records/s]."""
    if (rate := sustainable_rate(cell.run)) is not None:
        failed = cell.table("runs")["unsustainable_rate"].dropna()
        yield {"sustainable_rate": rate, "unsustainable_rate": float(failed.iat[0]) if len(failed) else math.nan}


def relative_to_none(table: pd.DataFrame) -> pd.DataFrame:
    """The table with `relative`: each rate over that of the same query on as many workers without checkpoints."""
    keys = ["query", "workers", "replicate"]
    alone = table[table["protocol"] == NONE].set_index(keys)["sustainable_rate"]
    found = [alone.get(tuple(row[key] for key in keys)) for _, row in table.iterrows()]
    return table.assign(relative=table["sustainable_rate"] / pd.Series(found, index=table.index, dtype=float))


def _ratios(table: pd.DataFrame, query: str, over: str, under: str) -> list[Ratio]:
    """Rates of two protocols on each number of workers; the limits are those of both brackets."""
    rows = by_query(table, query)
    known = complete(rows[rows["protocol"].isin((over, under))], "sustainable_rate", "unsustainable_rate")
    means = known.groupby(["workers", "protocol"])[["sustainable_rate", "unsustainable_rate"]].mean()
    found = []
    for workers in sorted(known["workers"].unique()):
        a, b = means.loc[workers, over], means.loc[workers, under]
        limits = a.iloc[0] / b.iloc[1], a.iloc[1] / b.iloc[0]
        found.append(Ratio(f"{over} / {under} on {workers}", a.iloc[0] / b.iloc[0], *limits))
    return found


def _not_below(query: str, over: str, under: str) -> Check:
    return at_least(
        f"{query}.{over.lower()}_not_below_{under.lower()}",
        lambda table: _ratios(table, query, over, under),
        AS_MUCH,
        f"{over} sustains at least {AS_MUCH:g} times what {under} does",
    )


def _plot(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 4.4), layout="constrained")
    for axes, workers in zip(figure.subplots(1, len(PARALLEL), sharey=True), PARALLEL, strict=True):
        draw_by_query(axes, table[table["workers"] == workers], "relative")
        axes.set(title=f"{workers} worker{'s' * (workers > 1)}")
    figure.axes[0].set(ylabel="sustainable throughput / that without checkpoints", ylim=(0, None))
    figure.legend(*figure.axes[-1].get_legend_handles_labels(), loc="outside upper right", ncols=4)
    return figure


REPRODUCTIONS = (
    measured(
        "checkmate/fig-07",
        "sustainable throughput over that without checkpoints, by query, protocol and workers",
        needs=searched,
        of_cell=sustained,
        finish=relative_to_none,
        plot=_plot,
        checks=tuple(_not_below(query, over, under) for query in QUERIES for over, under in ((COOR, UNC), (UNC, CIC))),
    ),
)
