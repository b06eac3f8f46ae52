"""`checkmate`, figure 7: the highest rate that each protocol sustains, over that without checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reproductions.checkmate.by_protocol import CIC, COOR, NONE, UNC, by_query, complete, draw_by_workers, facts
from reproductions.checkmate.experiments import QUERIES, SHORT, searched, sustainable_rate
from reproductions.checkmate.simulated import SimulatedCell, simulated, simulated_at_least
from reproductions.claims import Ratio, at_least, mean_ratio
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import InRows, like_rows
from reproductions.reproduction import ReproductionCheck, holds
from results.checks.rules import between

AS_MUCH = 1.0  # how far searches are off is in the limits of their ratio
SIMULATED_AS_MUCH = 0.97  # shares of `none` from costs that were measured twice differed by at most 3 points
COLLAPSED = 0.5  # of `none`: CIC with many workers, by the text


def sustained(cell: Cell) -> Iterator[Row]:
    """The highest rate that was sustained, and the lowest that was not, if any [records/s]."""
    if (rate := sustainable_rate(cell.run)) is not None:
        failed = cell.table("runs")["unsustainable_rate"].dropna()
        yield {"sustainable_rate": rate, "unsustainable_rate": float(failed.iat[0]) if len(failed) else math.nan}


def simulated_rate(cell: SimulatedCell) -> Iterator[Row]:
    """The highest rate that the cluster takes [records/s]."""
    yield {"sustainable_rate": cell.sustainable_rate()}


def relative_to_none(table: pd.DataFrame) -> pd.DataFrame:
    """The table with `relative`: each rate over that of the same query on as many workers without checkpoints."""
    keys = ["query", "workers", "replicate"]
    alone = table[table["protocol"] == NONE].set_index(keys)["sustainable_rate"]
    found = [alone.get(tuple(row[key] for key in keys)) for _, row in table.iterrows()]
    return table.assign(relative=table["sustainable_rate"] / pd.Series(found, index=table.index, dtype=float))


def _ratios(table: pd.DataFrame, query: str, over: str, under: str) -> list[Ratio]:
    """Rates of two protocols on each number of workers, with limits by the brackets, and by how searches differ."""
    rows = by_query(table, query)
    known = complete(rows[rows["protocol"].isin((over, under))], "sustainable_rate", "unsustainable_rate")
    return [_ratio(f"{over} / {under} on {workers}", each, over, under) for workers, each in known.groupby("workers")]


def _ratio(what: str, known: pd.DataFrame, over: str, under: str) -> Ratio:
    """The geometric mean over pairs of searches, around which the limits lie that come from how pairs differ.

    With one search each the limits are those of both brackets alone, which do not tell how searches differ. With more
    of them the limits are never narrower than the brackets: all searches may stop at the same steps.
    """
    searches = known.pivot(index="replicate", columns="protocol")
    held, too_high = searches["sustainable_rate"], searches["unsustainable_rate"]
    ratio = _geometric_mean(held[over] / held[under])
    low, high = _geometric_mean(held[over] / too_high[under]), _geometric_mean(too_high[over] / held[under])
    bracket = math.log(ratio / low if ratio >= AS_MUCH else high / ratio)
    if len(searches) == 1:
        return Ratio(f"{what} (one search each)", ratio, low, high, of_one_run=True, bracket=bracket)
    differing = mean_ratio(what, zip(held[over], held[under], strict=True))
    low, high = min(low, differing.low), max(high, differing.high)
    return Ratio(what, ratio, low, high, scatter=differing.scatter, bracket=bracket)


def _geometric_mean(ratios: pd.Series) -> float:
    return float(np.exp(np.log(ratios).mean()))


def _not_below(query: str, over: str, under: str) -> ReproductionCheck:
    return at_least(
        f"{query}.{over.lower()}_not_below_{under.lower()}",
        lambda table: _ratios(table, query, over, under),
        AS_MUCH,
        f"{over} sustains at least what {under} does",
        like_rows(("sustainable_rate", "unsustainable_rate"), over, under, 0.8),
    )


def _simulated_not_below(query: str, over: str, under: str) -> ReproductionCheck:
    def ratios(table: pd.DataFrame) -> list[tuple[str, float]]:
        rates = complete(by_query(table, query), "sustainable_rate").set_index("protocol")["sustainable_rate"]
        return [(f"{over} / {under}", rates[over] / rates[under])]

    name = f"{query}.{over.lower()}_not_below_{under.lower()}"
    return simulated_at_least(
        name,
        ratios,
        SIMULATED_AS_MUCH,
        f"{over} takes at least {SIMULATED_AS_MUCH:g} times what {under} does",
        like_rows(("sustainable_rate",), over, under, 0.95),
    )


def _collapses() -> ReproductionCheck:
    """ "In higher parallelism" CIC "can reach an MST lower than 50% of the checkpoint-free": in one query at least."""

    def least(table: pd.DataFrame) -> pd.DataFrame:
        rows = complete(table, "relative")
        rows = rows[(rows["protocol"] == CIC) & (rows["workers"] == rows["workers"].max())]
        return rows.nsmallest(1, "relative")

    return holds(
        "cic.collapses",
        least,
        [between("relative", 0, COLLAPSED)],
        lambda rows: ", ".join(f"{row.query} on {row.workers} {row.relative:.2f}" for row in rows.itertuples()),
        f"on the most workers CIC takes at most {COLLAPSED:g} times what no checkpoints do, in one query at least",
        InRows("CIC never below .6 of none", lambda table: table.assign(relative=table["relative"].clip(lower=0.6))),
    )


def _plot(table: pd.DataFrame) -> Figure:
    figure = draw_by_workers(table, "relative")
    figure.axes[0].set(ylabel="sustainable throughput / that without checkpoints", ylim=(0, None))
    figure.legend(*figure.axes[-1].get_legend_handles_labels(), loc="outside upper right", ncols=4)
    return figure


ORDER = ((COOR, UNC), (UNC, CIC))
REPRODUCTIONS = (
    measured(
        "checkmate/fig-07",
        "sustainable throughput over that without checkpoints, by query, protocol and workers",
        needs=searched,
        of_cell=sustained,
        finish=relative_to_none,
        plot=_plot,
        about=facts,
        checks=tuple(_not_below(query, *pair) for query in QUERIES for pair in ORDER),
        simulation=simulated(
            SHORT,
            simulated_rate,
            (*(_simulated_not_below(query, *pair) for query in QUERIES for pair in ORDER), _collapses()),
        ),
    ),
)
