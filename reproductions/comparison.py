"""Planners compared on random problems: means by setting and by share of the resources, and how they are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reproductions.reproduction import Check, holds
from results.checks.rules import between
from results.style import BLUE, GREY, ORANGE, SKY, WIDTH_IN

CONFIDENCE = 1.96  # standard errors on both sides of a mean: 95 %
LOOKS: tuple[dict[str, object], ...] = (  # the optimum comes first: open, so that what coincides with it shows
    {"color": GREY, "marker": "o", "ms": 9, "mfc": "none", "ls": "--"},
    {"color": BLUE, "marker": "o", "ms": 4},
    {"color": ORANGE, "marker": "s", "ms": 4},
    {"color": SKY, "marker": "D", "ms": 7, "mfc": "none", "ls": ":"},
)
ROUNDING = 1e-9  # what one value may be above another and still be taken as equal to it


def summarize(rows: Iterable[dict[str, object]]) -> pd.DataFrame:
    """Mean, standard deviation and standard error of `value`, one row for each setting, share and algorithm.

    Each row has the `bound` that no value of its problem can exceed; `least_room` is the least by which one of them
    stays below it, so that a single value above shows however many there are. Where there is a column `proved` it
    becomes the share of the values that are proved to be optimal.
    """
    found = pd.DataFrame(rows)
    found["room"] = found["bound"] - found["value"]
    groups = found.groupby(["setting", "share", "algorithm"], sort=False)
    table = groups["value"].agg(problems="size", mean="mean", std="std").reset_index()
    table["standard_error"] = table["std"] / np.sqrt(table["problems"])
    table["least_room"] = groups["room"].min().to_numpy()
    if "proved" in found:
        table["proved_share"] = groups["proved"].mean().to_numpy(dtype=float, na_value=np.nan)
    return table


def plot_comparison(table: pd.DataFrame, share: str, value: str) -> Figure:
    """One panel for each setting; means with 95 % intervals of the mean over the share of resources."""
    settings = table["setting"].unique()
    figure = Figure(figsize=(WIDTH_IN, 3.9), layout="constrained")
    panels = figure.subplots(1, len(settings), sharey=True, squeeze=False)[0]
    for axes, setting in zip(panels, settings, strict=True):
        parts = table[table["setting"] == setting].groupby("algorithm", sort=False)
        for (algorithm, rows), look in zip(parts, LOOKS, strict=False):
            arms = CONFIDENCE * rows["standard_error"]
            axes.errorbar(rows["share"], rows["mean"], yerr=arms, capsize=3, lw=1.4, label=algorithm, **look)
        axes.set(title=setting, xlabel=share, xlim=(0, 1), ylim=(0, 1.02))
    panels[0].set_ylabel(value)
    handles, labels = panels[0].get_legend_handles_labels()
    bars = "bars: 95 % confidence interval of the mean"
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), title=bars, title_fontsize=9)
    return figure


def by_algorithm(table: pd.DataFrame) -> pd.DataFrame:
    """The means, one row for each setting and share, one column for each algorithm."""
    return table.pivot(index=["setting", "share"], columns="algorithm", values="mean")


def never_above(name: str, expected: str) -> Check:
    """No value of any algorithm on any single problem is above the bound of that problem."""
    return holds(
        name,
        lambda table: table[["problems", "least_room"]],
        [between("least_room", -ROUNDING, None)],
        lambda frame: (
            f"{(frame['least_room'] < -ROUNDING).sum()} of {len(frame)} points with a value above, "
            f"of {frame['problems'].sum()} values; least room {frame['least_room'].min():.3g}"
        ),
        expected,
    )


def mean_never_below(name: str, better: str, others: Sequence[str], expected: str) -> Check:
    """At every point the mean of one algorithm is not below that of the others."""

    def margins(table: pd.DataFrame) -> pd.DataFrame:
        means = by_algorithm(table)
        return pd.DataFrame({"margin": np.concatenate([means[better] - means[other] for other in others])})

    return holds(
        name,
        margins,
        [between("margin", -ROUNDING, None)],
        lambda frame: (
            f"{(frame['margin'] >= -ROUNDING).sum()} of {len(frame)} means, by {frame['margin'].min():.3f} up"
        ),
        expected,
    )
