"""`ppa`, figure 9: CPU time of checkpoints relative to that of processing, by checkpoint interval."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure

from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import scaled_rows
from reproductions.ppa.experiments import COST_INTERVALS_S, COST_RATES, undisturbed
from reproductions.ppa.recoveries import facts
from reproductions.reproduction import holds
from results.checks.rules import NotEnough, between
from results.views.style import BLUE, ORANGE, WIDTH_IN

COLORS = dict(zip(COST_RATES, (BLUE, ORANGE), strict=True))
FEWER = 2.0  # with checkpoints every second, at least so many times the share that there is with the next interval


def shares(cell: Cell) -> Iterator[Row]:
    """CPU time of checkpoints over that of processing."""
    for found in cell.table("runs")["checkpoint_cpu_share"].dropna():
        yield {"share": float(found)}


def _by_interval(table: pd.DataFrame) -> pd.DataFrame:
    """By load and interval, the median over the replicates; raises `NotEnough` if some are missing."""
    if "share" not in table or table["share"].isna().any():
        raise NotEnough("the share of checkpoints is not known of every interval and load")
    return table.groupby(["rate", "interval_s"])["share"].median().unstack("interval_s")


def _steps(table: pd.DataFrame) -> pd.DataFrame:
    found = _by_interval(table)
    return pd.DataFrame({"step": found.diff(axis="columns").iloc[:, 1:].to_numpy().ravel()})


def _quickly(table: pd.DataFrame) -> pd.DataFrame:
    found = _by_interval(table)
    return pd.DataFrame({"ratio": found[COST_INTERVALS_S[0]] / found[COST_INTERVALS_S[1]]})


def _plot(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 3.9), layout="constrained")
    axes = figure.subplots()
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
            holds(
                "checkpoints.cost_less_at_longer_intervals",
                _steps,
                [between("step", None, 0.0)],
                lambda found: f"{(found['step'] <= 0).sum()} of {len(found)} steps fall",
                "a longer interval takes no larger share, for each load",
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
