"""Planners compared on random problems: means by setting and by share of the resources, and how they are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.wording import counted
from reproductions.plants import Plant
from reproductions.reproduction import ReproductionCheck, holds
from reproductions.runs_needed import BARS, half_of_mean
from results.checks.rules import NotEnough, between
from results.views.style import BLUE, GREY, ORANGE, SKY, WIDTH_IN

LOOKS: tuple[dict[str, object], ...] = (  # the optimum comes first: open, so that what coincides with it shows
    {"color": GREY, "marker": "o", "ms": 9, "mfc": "none", "ls": "--"},
    {"color": BLUE, "marker": "o", "ms": 4},
    {"color": ORANGE, "marker": "s", "ms": 4},
    {"color": SKY, "marker": "D", "ms": 7, "mfc": "none", "ls": ":"},
)
ANYTHING = 0.01  # a mean below it hangs on one problem in a hundred
ROUNDING = 1e-9  # what one value may be above another and still be taken as equal to it


def summarize(rows: Iterable[dict[str, object]]) -> pd.DataFrame:
    """Mean, standard deviation and standard error of `value`, one row for each setting, share and algorithm.

    Each row has the `bound` that no value of its problem can exceed; `least_room` is the least by which one of them
    stays below it, so that a single value above shows however many there are. Where there is a column `proved` it
    becomes the share of the values that are proved to be optimal. `optimal_share` is the share of the values that meet
    a bound above 0, of the `reachable` problems that have one.
    """
    found = pd.DataFrame(rows)
    found["room"] = found["bound"] - found["value"]
    found["optimal"] = (found["room"].abs() <= ROUNDING).where(found["bound"] > 0).astype(float)
    groups = found.groupby(["setting", "share", "algorithm"], sort=False)
    table = groups["value"].agg(problems="size", mean="mean", std="std").reset_index()
    table["standard_error"] = table["std"] / np.sqrt(table["problems"])
    table["least_room"] = groups["room"].min().to_numpy()
    table["optimal_share"] = groups["optimal"].mean().to_numpy()
    table["reachable"] = groups["optimal"].count().to_numpy()
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
            arms = half_of_mean(rows["std"], rows["problems"])
            axes.errorbar(rows["share"], rows["mean"], yerr=arms, capsize=3, lw=1.4, label=algorithm, **look)
        axes.set(title=setting, xlabel=share, xlim=(0, 1.03), ylim=(0, 1.03))
    panels[0].set_ylabel(value)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), title=BARS, title_fontsize=9)
    return figure


def by_algorithm(table: pd.DataFrame) -> pd.DataFrame:
    """The means, one row for each setting and share, one column for each algorithm; raises `NotEnough` without rows."""
    if table.empty:
        raise NotEnough("there is nothing to compare")
    return table.pivot(index=["setting", "share"], columns="algorithm", values="mean")


def scarce(table: pd.DataFrame) -> pd.DataFrame:
    """The rows in which the resources are not enough for everything."""
    return table[table["share"] < 1.0]


def never_above(name: str, expected: str, plant: Plant) -> ReproductionCheck:
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
        plant,
    )


def mean_above(
    name: str, better: str, worse: str, optimum: str, expected: str, plant: Plant, fails: str = ""
) -> ReproductionCheck:
    """The mean of one algorithm is above that of another at every point at which the optimum reaches anything."""

    def margins(table: pd.DataFrame) -> pd.DataFrame:
        means = by_algorithm(scarce(table))
        means = means[means[optimum] >= ANYTHING]
        return pd.DataFrame({"margin": means[better] - means[worse]})

    return holds(
        name,
        margins,
        [between("margin", ROUNDING, None)],
        lambda frame: f"{(frame['margin'] > ROUNDING).sum()} of {len(frame)} means, by {frame['margin'].min():.3f} up",
        expected,
        plant,
        fails,
    )


def often_optimal(name: str, algorithm: str, least: float, expected: str, plant: Plant) -> ReproductionCheck:
    """An algorithm meets the optimum on at least this share of all problems: an error in all of its plans ends that.

    Problems of which nothing can be reached do not count, so a point weighs as much as it has others.
    """

    def shares(table: pd.DataFrame) -> pd.DataFrame:
        rows = scarce(table)
        found = rows[rows["algorithm"] == algorithm].dropna(subset="optimal_share")
        problems, optimal = found["reachable"].sum(), (found["optimal_share"] * found["reachable"]).sum()
        return pd.DataFrame([{"optimal_share": optimal / problems, "problems": problems}] if problems else [])

    return holds(
        name,
        shares,
        [between("optimal_share", least, None)],
        lambda frame: f"on {frame['optimal_share'].iat[0]:.0%} of {counted(int(frame['problems'].iat[0]), 'problem')}",
        expected,
        plant,
    )


def mean_rises(name: str, algorithms: Sequence[str], start: float, expected: str, plant: Plant) -> ReproductionCheck:
    """From a share of the resources on, more of them raise the mean of each algorithm at every step."""

    def steps(table: pd.DataFrame) -> pd.DataFrame:
        means = by_algorithm(table[table["share"] >= start])[list(algorithms)]
        return pd.DataFrame({"step": means.groupby("setting").diff().dropna().to_numpy().ravel()})

    return holds(
        name,
        steps,
        [between("step", ROUNDING, None)],
        lambda frame: f"{(frame['step'] > ROUNDING).sum()} of {len(frame)} steps rise, by {frame['step'].min():.3f} up",
        expected,
        plant,
    )


def all_with_everything(name: str, algorithms: Sequence[str], expected: str, plant: Plant) -> ReproductionCheck:
    """With all the resources each algorithm reaches 1: the one point of the curve that is known without a figure."""
    return holds(
        name,
        lambda table: table[(table["share"] == 1.0) & table["algorithm"].isin(algorithms)],
        [between("mean", 1.0 - ROUNDING, 1.0 + ROUNDING)],
        lambda frame: f"{frame['mean'].min():.6g} to {frame['mean'].max():.6g}",
        expected,
        plant,
    )


def better_setting(
    name: str, algorithm: str, better: str, worse: str, plant: Plant, by: float = ROUNDING, fails: str = ""
) -> ReproductionCheck:
    """What a text says about the two settings of a panel: an algorithm reaches more in one, wherever it does in any."""

    def gains(table: pd.DataFrame) -> pd.DataFrame:
        means = by_algorithm(scarce(table))[algorithm].unstack("setting")
        means = means[(means > 0).any(axis=1)]
        return pd.DataFrame({"gain": means[better] - means[worse]})

    return holds(
        name,
        gains,
        [between("gain", by, None)],
        lambda frame: (
            f"{(frame['gain'] > ROUNDING).sum()} of {len(frame)} points higher, "
            f"by {frame['gain'].min():.4f} to {frame['gain'].max():.4f}"
        ),
        f"{algorithm} higher{f' by {by:g} or more' * (by > ROUNDING)} at every point: {better}, against {worse}",
        plant,
        fails,
    )
