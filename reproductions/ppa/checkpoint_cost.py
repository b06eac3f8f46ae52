"""`ppa`, figure 9: CPU time of checkpoints relative to that of processing, by checkpoint interval."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pandas as pd
from matplotlib.figure import Figure

from reproductions.claims import IN_THE_MEAN, Ratio, at_least, paired_ratio
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import scaled_rows
from reproductions.ppa.experiments import COST_INTERVALS_S, COST_RATES, undisturbed
from reproductions.ppa.recoveries import facts
from reproductions.reproduction import holds
from results.checks.rules import NotEnough, between
from results.views.style import BLUE, ORANGE, new_figure

COLORS = dict(zip(COST_RATES, (BLUE, ORANGE), strict=True))
PAIRED = ("rate", "replicate")
NOT_KNOWN = "the share of checkpoints is not known of every interval and load"
FEWER = 2.0  # with checkpoints every second, at least so many times the share that there is with the next interval


def shares(cell: Cell) -> Iterator[Row]:
    """CPU time of checkpoints over that of processing."""
    for found in cell.table("runs")["checkpoint_cpu_share"].dropna():
        yield {"share": float(found)}


def _known(table: pd.DataFrame) -> pd.DataFrame:
    """The table; raises `NotEnough` if some shares are missing."""
    if "share" not in table or table["share"].isna().any():
        raise NotEnough(NOT_KNOWN)
    return table


def _steps(table: pd.DataFrame) -> list[Ratio]:
    """The share with each interval over that with the next longer one; pairs by load and replicate."""
    known = _known(table)
    return [
        paired_ratio(f"every {short:g} s over every {long:g} s", known, "share", "interval_s", short, long, PAIRED)
        for short, long in pairwise(COST_INTERVALS_S)
    ]


def _quickly(table: pd.DataFrame) -> pd.DataFrame:
    """By load, medians over the replicates."""
    medians = _known(table).groupby(["rate", "interval_s"])["share"].median()
    every_second, later = COST_INTERVALS_S[:2]
    found = medians.unstack("interval_s").reindex(columns=[every_second, later])
    if found.isna().any(axis=None):
        raise NotEnough(NOT_KNOWN)
    return pd.DataFrame({"ratio": found[every_second] / found[later]})


def _plot(table: pd.DataFrame) -> Figure:
    figure, axes = new_figure(3.9)
    for rate, rows in table.groupby("rate"):
        medians = rows.groupby("interval_s")["share"].median()
        axes.plot(medians.index, medians, marker="o", color=COLORS[float(str(rate))], label=f"{rate:g} records/s")
    axes.set(xlabel="checkpoint interval [s]", ylabel="CPU of checkpoints / of processing", ylim=(0, None))
    axes.legend()
    return figure


REPRODUCTIONS = (
    measured(
        "ppa/fig-09",
        "CPU time of checkpoints over that of processing, by checkpoint interval",
        needs=undisturbed,
        of_cell=shares,
        plot=_plot,
        checks=(
            at_least(
                "checkpoints.cost_less_at_longer_intervals",
                _steps,
                1.0,
                f"a longer interval takes no larger share, {IN_THE_MEAN} of the loads",
                scaled_rows("share", 0.05, interval_s=COST_INTERVALS_S[1]),
            ),
            holds(
                "checkpoints.cost_much_every_second",
                _quickly,
                [between("ratio", FEWER, None)],
                lambda found: f"{found['ratio'].min():.1f} to {found['ratio'].max():.1f} times",
                f"every second, at least {FEWER:g} times the share of every {COST_INTERVALS_S[1]:g} s",
                scaled_rows("share", 0.3, interval_s=COST_INTERVALS_S[0]),
            ),
        ),
        about=facts,
    ),
)
