"""`utilization`, figures 5 and 12: the stochastic simulation against eqs. 4 and 10.

The paper's figures are lost, and with them its values of T and of n: T goes here from just above c to four times T* in
20 steps, and n is 5, 25, 50. Runs and their length are the paper's: 250 runs of 2000 / λ.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from models.simulation.simulate import simulate
from models.utilization import optimal_interval, utilization
from reproductions.plants import InCode, scaled
from reproductions.reproduction import Progress, Reproduction, ReproductionCheck, Size, holds
from results.checks.rules import between, in_set
from results.views.style import BLUE, GREEN, ORANGE, WIDTH_IN

RATES_PER_MIN = (0.1, 0.05, 0.025, 0.005)
COST_MIN, RECOVERY_MIN, HOP_DELAY_MIN = 5.0, 10.0, 0.5
ONE_PROCESS, TOPOLOGIES = (1,), (5, 25, 50)  # depths n
POINTS, FAILURES = 20, 2000
RUNS = Size("runs of 2000 failures for each point", default=250, paper=250, least=20)
SEED = 1
CHANCE_OF_ANY = 0.05  # how often at least one mean is too far off where model and simulation agree
CHANCE = 0.001  # how often the joint check fails where model and simulation agree
COLOURS = (BLUE, ORANGE, GREEN)


def points(depths: tuple[int, ...]) -> Iterator[tuple[float, int, float]]:
    """Failure rate [1/min], depth and T [min] of every point."""
    for rate in RATES_PER_MIN:
        for depth in depths:
            for interval in np.linspace(1.2 * COST_MIN, 4 * optimal_interval(rate, COST_MIN), POINTS):
                yield rate, depth, float(interval)


def simulated(depths: tuple[int, ...], runs: int, tell: Progress) -> pd.DataFrame:
    """Mean, standard deviation and standard error of each point beside the model."""
    rows, every = [], list(points(depths))
    seeds = np.random.SeedSequence(SEED).spawn(2 * len(every))[::2]  # so that points stay those published before
    for done, ((rate, depth, interval), seed) in enumerate(zip(every, seeds, strict=True)):
        tell(done, len(every))
        model = utilization(rate, COST_MIN, RECOVERY_MIN, interval, HOP_DELAY_MIN, depth)
        found = simulate(
            failure_rate=rate,
            checkpoint_cost=COST_MIN,
            recovery_time=RECOVERY_MIN,
            interval=interval,
            hop_delay=HOP_DELAY_MIN,
            depth=depth,
            runs=runs,
            failures=FAILURES,
            seed=seed,
        )
        facts = {"failure_rate_per_min": rate, "depth": depth, "interval_min": interval, "utilization": model}
        facts |= {"mean": found.mean, "std": found.std, "standard_error": found.standard_error, "runs": runs}
        rows.append(facts | {"off_by_standard_errors": (found.mean - model) / found.standard_error})
    return pd.DataFrame(rows)


def plot(table: pd.DataFrame) -> Figure:
    """A panel for each failure rate: eq. 4 or 10 as lines, the simulated means with bars of one standard deviation."""
    figure = Figure(figsize=(WIDTH_IN, 6.4), layout="constrained")
    groups = table.groupby("failure_rate_per_min", sort=False)
    panels = figure.subplots(2, 2)
    for axes, (rate, panel) in zip(panels.flat, groups, strict=True):
        for colour, (depth, rows) in zip(COLOURS, panel.groupby("depth"), strict=False):
            t = np.linspace(COST_MIN, rows["interval_min"].max(), 300)
            line = utilization(rate, COST_MIN, RECOVERY_MIN, t, HOP_DELAY_MIN, depth)
            axes.plot(t, line, color=colour, lw=1.2, label=f"model, n = {depth}")
            axes.errorbar(
                rows["interval_min"], rows["mean"], yerr=rows["std"], fmt="o", ms=3, capsize=2, lw=1, color=colour,
                label=f"simulation, n = {depth}",
            )  # fmt: skip
        axes.set(title=f"λ = {rate:g} per minute", ylim=(0, None))
    for axes in panels[:, 0]:
        axes.set_ylabel("utilization U", labelpad=8)
    for axes in panels[-1]:
        axes.set_xlabel("checkpoint interval T [min]")
    figure.align_ylabels(panels[:, 0])
    handles, labels = axes.get_legend_handles_labels()
    bars = "bars: one standard deviation of a run on both sides of the mean"
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), title=bars, title_fontsize=9)
    return figure


def _joint(table: pd.DataFrame) -> pd.DataFrame:
    """The probability of a sum of squares as high as this, if each mean differs from the model by chance alone."""
    student = stats.t(table["runs"].to_numpy() - 1)
    normal = stats.norm.isf(student.sf(np.abs(table["off_by_standard_errors"])))
    squares = float(np.sum(normal**2))
    return pd.DataFrame({"squares": [squares], "points": [len(table)], "chance": [stats.chi2.sf(squares, len(table))]})


def _farthest(table: pd.DataFrame) -> pd.DataFrame:
    """The mean that is farthest off the model, and how far one of as many may be."""
    most = stats.t.isf(CHANCE_OF_ANY / len(table) / 2, table["runs"].min() - 1)
    each = table["off_by_standard_errors"].abs()
    off, over_3 = each.max(skipna=False), (each > 3).sum()
    return pd.DataFrame([{"off": off, "most": most, "beyond": off - most, "over_3": over_3, "points": len(table)}])


def _falls(table: pd.DataFrame) -> pd.DataFrame:
    """Whether the mean falls from each depth to the next, at every failure rate and T."""
    wide = table.pivot_table(index=["failure_rate_per_min", "interval_min"], columns="depth", values="mean")
    return pd.DataFrame({"falls": (wide.diff(axis=1).iloc[:, 1:] < 0).to_numpy().ravel()})


EQ_10_HIGHER = scaled("eq. 10", "models.utilization:utilization", 1.05)
HOPS_AT_ONCE = InCode(
    "the simulation without δ",
    "models.simulation.simulate:simulate",
    lambda sound: lambda **inputs: sound(**inputs | {"hop_delay": 0.0}),
)
AGREEMENT: tuple[ReproductionCheck, ...] = (
    holds(
        "means.each",
        _farthest,
        [between("beyond", None, 0.0)],
        lambda frame: (
            "{off:.2f} standard errors at most, {over_3:.0f} of {points:.0f} points more than 3; the limit for so many"
            " points is {most:.2f}".format(**frame.iloc[0])
        ),
        f"no mean farther off the model than chance puts any of them in {CHANCE_OF_ANY:.0%} of cases (Bonferroni)",
        EQ_10_HIGHER,
    ),
    holds(
        "means.jointly",
        _joint,
        [between("chance", CHANCE / 2, 1 - CHANCE / 2)],
        lambda frame: "chi-square {squares:.1f} over {points:.0f} points: p = {chance:.3f}".format(**frame.iloc[0]),
        f"all points together as chance has them, but for {CHANCE:.1%}",
        EQ_10_HIGHER,
    ),
)
FALLS_WITH_DEPTH = holds(
    "means.fall_with_depth",
    _falls,
    [in_set("falls", True)],
    lambda frame: f"{frame['falls'].sum()} of {len(frame)} steps from one depth to the next fall",
    "at each T a deeper topology has the lower mean",
    HOPS_AT_ONCE,
)

REPRODUCTIONS = (
    Reproduction(
        "utilization/fig-05",
        "simulation against eq. 4, one process",
        compute=lambda size, tell: simulated(ONE_PROCESS, size, tell),
        plot=plot,
        checks=AGREEMENT,
        size=RUNS,
    ),
    Reproduction(
        "utilization/fig-12",
        "simulation against eq. 10, topologies of 5, 25 and 50 operators",
        compute=lambda size, tell: simulated(TOPOLOGIES, size, tell),
        plot=plot,
        checks=(*AGREEMENT, FALLS_WITH_DEPTH),
        size=RUNS,
    ),
)
