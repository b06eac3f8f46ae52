"""`utilization`, table 1: measured utilization at a default checkpoint interval and at T*, by failure rate and depth.

T* of a row comes from what its run at the default interval has measured. So the run at T* follows the one at the
default, at once if each missing run is done by itself: what changes on the machine then concerns both alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.wording import counted
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import put_in_rows, scaled_rows
from reproductions.reproduction import Size, holds
from reproductions.utilization.experiments import (
    DEPTHS,
    FEWEST_FAULTS,
    HOST_GAPS,
    MEANS_S,
    ROWS,
    Interval,
    at_both_intervals,
    interval_of,
    row_of,
)
from results.checks.rules import NotEnough, between, in_set
from results.predictions.pooled import NoWindow, Pooled, Window, pooled_windows, window_of
from results.summary.findings import model_inputs, table_or_empty, took_effect, utilizations
from results.verdict import Verdict
from results.views.style import BLUE, ORANGE, WIDTH_IN, legend_above

APART = 0.01
ADJOINING_H = 1.0  # of two runs that adjoin, the later one starts at most 23 min after the other
ROW = ["mean_s", "depth"]
COLORS = {Interval.DEFAULT: BLUE, Interval.BEST: ORANGE}
LONGEST = {"mean_s": MEANS_S[-1], "depth": DEPTHS[-1]}


def facts(cell: Cell) -> Row:
    """What is known of a cell, whether it has been run or not."""
    row = row_of(cell.experiment)
    return {
        "mean_s": row.mean_s,
        "depth": row.depth,
        "interval": interval_of(cell.experiment).value,
        "interval_set_s": cell.experiment.engine.checkpoint_interval_s,
        "started_at": cell.started_at,
    } | cell.origin


def measurements(cell: Cell) -> Iterator[Row]:
    """What a run measured, what its replay says, the inputs of the model, and its window beside eq. 10.

    `interval_s` is the interval as it was run, and that of `eq_10`; `eq_10_at_set` is eq. 10 at the interval set.
    """
    if cell.run is None:
        return
    found, inputs = utilizations(cell.run), model_inputs(cell.run)
    row: Row = {"faults": len(took_effect(table_or_empty(cell.run, "faults")))}
    row |= {"measured": found.measured, "replayed": found.predicted, "low": found.low, "high": found.high}
    if inputs is not None:
        row |= {"stages" if name == "depth" else name: value for name, value in vars(inputs).items()}
        row["eq_10_at_set"] = float(inputs.at(cell.experiment.engine.checkpoint_interval_s))
    try:
        window = window_of(cell.run, HOST_GAPS)
    except NoWindow:
        yield row
        return
    yield row | {"window_s": window.window_s, "eq_10": window.expected, "added": window.added, "luck": window.luck}


def _complete(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The table; raises `NotEnough` unless each row is known at both intervals under each seed, with enough faults."""
    for row in ROWS:
        of_row = table[(table["mean_s"] == row.mean_s) & (table["depth"] == row.depth)]
        if of_row.empty:
            raise NotEnough(f"not known: every {row.mean_s:g} s, depth {row.depth}")
        replicates = enumerate(sorted(of_row["replicate"].unique()), 1)
        for (number, seed), interval in product(replicates, Interval):
            name = f"every {row.mean_s:g} s, depth {row.depth}, {interval}, replicate {number}"
            known = of_row[(of_row["interval"] == interval) & (of_row["replicate"] == seed)]
            if known.empty or known.reindex(columns=["faults", *columns]).isna().any(axis=None):
                raise NotEnough(f"not known: {name}")
            if (faults := known["faults"].min()) < FEWEST_FAULTS:
                raise NotEnough(f"{faults:.0f} faults instead of {FEWEST_FAULTS}: {name}")
    return table


def _gains(table: pd.DataFrame) -> pd.DataFrame:
    """By row, how much higher utilization is at T*, on average over the replicates; both had the same faults."""
    means = _complete(table, "measured").groupby([*ROW, "interval"])["measured"].mean().unstack("interval")
    gains = means[Interval.BEST] - means[Interval.DEFAULT]
    return pd.DataFrame({"gain": gains, "share": gains / means[Interval.DEFAULT], "above": gains > 0})


def _hours_between(table: pd.DataFrame) -> pd.DataFrame:
    """By pair, how long after one of its runs the other one started [h]."""
    rows = _complete(table, "started_at")
    starts = rows.assign(at=pd.to_datetime(rows["started_at"], utc=True)).groupby([*ROW, "replicate"])["at"]
    return pd.DataFrame({"hours": (starts.max() - starts.min()) / pd.Timedelta(hours=1)})


def _apart(table: pd.DataFrame) -> pd.DataFrame:
    rows = _complete(table, "measured", "replayed")
    return pd.DataFrame({"apart": (rows["measured"] - rows["replayed"]).abs()})


def _beside_eq_10(table: pd.DataFrame) -> pd.DataFrame:
    rows = _complete(table, "measured", "eq_10", "added", "luck", "window_s")
    found = pooled_windows(
        [
            Window(row.replicate, row.window_s, int(row.faults), row.measured, row.eq_10, row.added, row.luck)
            for row in rows.itertuples()
        ]
    )
    if found.verdict is Verdict.UNKNOWN:
        raise NotEnough(found.sentence)
    off = rows["measured"] - rows["eq_10"]
    told = {"beyond": _beyond(found), "least_off": off.min(), "most_off": off.max()}
    return pd.DataFrame([found.row() | told])


def _beyond(found: Pooled) -> float:
    """By how much the measured utilization is outside of what chance explains; below 0 inside."""
    measured, low, high = np.asarray([found.measured, found.low, found.high], dtype=float)
    return float(max(low - measured, measured - high))


DRAWN: dict[str, tuple[str, dict[str, object]]] = {  # by column: label and look
    "measured": ("measured", {"marker": "o"}),
    "replayed": ("replayed", {"marker": "_", "ms": 18}),
    "eq_10": ("eq. 10", {"marker": "x"}),
}


def _plot(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 4.0), layout="constrained")
    for panel, depth in zip(figure.subplots(1, len(DEPTHS), sharey=True), DEPTHS, strict=True):
        of_depth = table[table["depth"] == depth].reindex(columns=["mean_s", "interval", *DRAWN])
        for column, (label, look) in DRAWN.items():
            for shift, interval in zip((-0.1, 0.1), Interval, strict=True):
                rows = of_depth[of_depth["interval"] == interval]
                at = [MEANS_S.index(mean_s) + shift for mean_s in rows["mean_s"]]
                of_interval = {"color": COLORS[interval], "label": f"{interval}, {label}"}
                panel.plot(at, rows[column].astype(float), ls="none", **look, **of_interval)
        panel.set_xticks(range(len(MEANS_S)), [f"{mean_s:g} s" for mean_s in MEANS_S])
        panel.set(title=counted(depth, "stateful operator"), xlabel="mean time between failures")
        panel.set(xlim=(-0.5, len(MEANS_S) - 0.5), ylim=(0, 1))
    figure.axes[0].set_ylabel("utilization")
    legend_above(figure)
    return figure


TABLE_1 = measured(
    "utilization/table-1",
    "measured utilization at a default checkpoint interval and at T*, by failure rate and depth",
    needs=at_both_intervals,
    of_cell=measurements,
    plot=_plot,
    checks=(
        holds(
            "optimum.above_default",
            _gains,
            [in_set("above", True)],
            lambda found: (
                f"{found['gain'].min():+.4f} to {found['gain'].max():+.4f},"
                f" {found['share'].min():+.0%} to {found['share'].max():+.0%}"
            ),
            "measured utilization is higher at T* than at the default interval, in every row",
            scaled_rows("measured", 0.5, interval=Interval.BEST.value, **LONGEST),
        ),
        holds(
            "pairs.adjoin",
            _hours_between,
            [between("hours", None, ADJOINING_H)],
            lambda found: f"started {found['hours'].max():.1f} h apart at most",
            f"the two runs of a pair started at most {ADJOINING_H:g} h apart, as runs of one session that adjoin",
            put_in_rows("started_at", "2026-01-01T00:00:00+00:00", interval=Interval.BEST.value, **LONGEST),
        ),
        holds(
            "replay.within_a_hundredth",
            _apart,
            [between("apart", None, APART)],
            lambda found: f"{found['apart'].max():.4f} apart at most",
            f"measured and replayed utilization are at most {APART:g} apart, in every row",
            scaled_rows("replayed", 1.05, interval=Interval.DEFAULT.value, **LONGEST),
        ),
        holds(
            "eq_10.pooled",
            _beside_eq_10,
            [between("beyond", None, 0.0)],
            lambda found: (
                f"{found['measured'].iat[0]:.4f} over {found['faults'].iat[0]} different faults; eq. 10 gives"
                f" {found['expected'].iat[0]:.4f}, by chance {found['low'].iat[0]:.4f} to {found['high'].iat[0]:.4f};"
                f" single runs are {found['least_off'].iat[0]:+.4f} to {found['most_off'].iat[0]:+.4f} off eq. 10"
            ),
            "utilization over all rows together is what eq. 10 gives, but for chance (99 %)",
            scaled_rows("eq_10", 1.1),
        ),
    ),
    about=facts,
)
REPRODUCTIONS = (replace(TABLE_1, size=Size("runs of each cell", default=1, paper=5)),)
