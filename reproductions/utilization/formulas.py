"""`utilization`, figures 4, 10, 11 and 14: U over the checkpoint interval and over the depth of the topology."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from models.utilization import Values, optimal_interval, optimal_utilization, utilization
from reproductions.plants import InCode, put, scaled
from reproductions.printed import beside_printed, figure_at
from reproductions.reproduction import Progress, Reproduction, ReproductionCheck, as_printed, holds
from reproductions.searching import highest
from results.checks.rules import between, in_set
from results.views.style import BLUE, GREEN, ORANGE, PAPER, new_figure

RATE_PER_MIN, COST_MIN, RECOVERY_MIN = 0.005, 5.0, 10.0  # of figures 4, 10 and 11
HOP_DELAY_MIN, DEPTH = 0.5, 50  # of the topology of figures 10 and 11
LONGEST_MIN = 300.0
ONE_PROCESS, TOPOLOGY = "one process", f"topology, n = {DEPTH}"
DEPTHS = {ONE_PROCESS: 1, TOPOLOGY: DEPTH}
PRINTED_BEST = {ONE_PROCESS: ("46.452", ".7541"), TOPOLOGY: ("46.452", ".667")}
PRINTED_DECREASE = "11.6"
DECREASE = figure_at("below_one_process_percent", point="decrease")
WHY = {
    PRINTED_DECREASE: "the paper divides its rounded figures, 1 - .667 / .7541 = .1155, and rounds again to 11.6 %; "
    "exact is 1 - exp(-λ (n - 1) δ) = 11.53 %"
}
DEEPEST = 20_000
PRINTED_DEEP = {15_000: ".0018"}
EQ_10_HIGHER = scaled("eq. 10", "models.utilization:utilization", 1.001)
COST_HIGHER = put("c + .1 %", "reproductions.utilization.formulas:COST_MIN", 1.001 * COST_MIN)
DELAY_HIGHER = put("δ + 1 %", "reproductions.utilization.formulas:HOP_DELAY_MIN", 1.01 * HOP_DELAY_MIN)
OPTIMUM_LONGER = scaled("T*", "models.utilization:optimal_interval", 1.001)
DEPTH_IGNORED = InCode(
    "eq. 10 at T* without its depth",
    "models.utilization:optimal_utilization",
    lambda sound: lambda rate, cost, recovery, delay, depth: sound(rate, cost, recovery, delay, 1) + 0.0 * depth,
)


def over_interval(*systems: str) -> pd.DataFrame:
    """U over T by eq. 10, and its maximum, found by search and not by the formula for T*."""
    return pd.concat([_curve(system) for system in systems] + [_maximum(system) for system in systems])


def _utilization(system: str, interval_min: Values) -> Values:
    return utilization(RATE_PER_MIN, COST_MIN, RECOVERY_MIN, interval_min, HOP_DELAY_MIN, DEPTHS[system])


def _curve(system: str) -> pd.DataFrame:
    intervals_min = np.linspace(COST_MIN, LONGEST_MIN, 591)
    curve = {"system": system, "point": "curve", "interval_min": intervals_min}
    return pd.DataFrame(curve | {"utilization": _utilization(system, intervals_min)})


def _maximum(system: str) -> pd.DataFrame:
    best_min = float(highest(lambda at_min: np.asarray(_utilization(system, at_min)), COST_MIN, LONGEST_MIN))
    printed_min, printed = PRINTED_BEST[system]
    maximum = {
        "system": system,
        "point": "maximum",
        "interval_min": best_min,
        "utilization": _utilization(system, best_min),
    }
    table = beside_printed(pd.DataFrame([maximum]), "interval_min", [printed_min])
    return beside_printed(table, "utilization", [printed])


def both_systems(size: int, tell: Progress) -> pd.DataFrame:
    """Figure 11: both curves, and how far the topology lies below the single process."""
    table = over_interval(ONE_PROCESS, TOPOLOGY)
    below = 100 * (1 - _best(table, TOPOLOGY)["utilization"] / _best(table, ONE_PROCESS)["utilization"])
    decrease = pd.DataFrame([{"system": TOPOLOGY, "point": "decrease", "below_one_process_percent": below}])
    return pd.concat([table, beside_printed(decrease, "below_one_process_percent", [PRINTED_DECREASE], WHY)])


def _best(table: pd.DataFrame, system: str) -> pd.Series:
    return table[(table["system"] == system) & (table["point"] == "maximum")].iloc[0]


def plot_over_interval(table: pd.DataFrame) -> Figure:
    """The curves of a table over T, with their maxima."""
    figure, axes = new_figure(3.9)
    for system, colour in zip(table["system"].unique(), (BLUE, ORANGE), strict=False):
        rows, best = table[(table["system"] == system) & (table["point"] == "curve")], _best(table, system)
        axes.plot(rows["interval_min"], rows["utilization"], color=colour, label=system)
        label = f"maximum {best['utilization']:.4f} at T = {best['interval_min']:.3f} min"
        axes.plot(best["interval_min"], best["utilization"], "*", color=colour, ms=13, mec=PAPER, label=label)
    axes.axvline(
        float(optimal_interval(RATE_PER_MIN, COST_MIN)), color=GREEN, ls="--", lw=1.2, label="T* by the formula"
    )
    axes.set(xlabel="checkpoint interval T [min]", ylabel="utilization U", xlim=(0, LONGEST_MIN), ylim=(0, 1))
    _legend_above(axes)
    return figure


def over_depth(size: int, tell: Progress) -> pd.DataFrame:
    """Figure 14: U at T* by n, for R = 30 s, c = 10 s, δ = 5 s and λ = .005 per minute."""
    depths = np.unique(np.r_[1, np.arange(100, DEEPEST + 1, 100)])
    table = pd.DataFrame({"depth": depths, "utilization": optimal_utilization(0.005 / 60, 10.0, 30.0, 5.0, depths)})
    return beside_printed(table, "utilization", map(PRINTED_DEEP.get, depths.tolist()))


def plot_over_depth(table: pd.DataFrame) -> Figure:
    """Figure 14 from the table of `over_depth`: U at T* on a log scale, and the printed point."""
    figure, axes = new_figure(3.5)
    axes.plot(
        table["depth"],
        table["utilization"],
        color=BLUE,
        label="eq. 10 at T*; λ = .005 per minute, R = 30 s, c = 10 s, δ = 5 s",
    )
    printed = table.dropna(subset="printed_utilization")
    axes.plot(printed["depth"], printed["printed_utilization"], "o", color=ORANGE, label="printed: .0018 at n = 15,000")
    axes.set(
        xlabel="depth n [operators]", ylabel="utilization U at T*", yscale="log", ylim=(1e-4, 1), xlim=(0, DEEPEST)
    )
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _legend_above(axes)
    return figure


def _legend_above(axes: Axes) -> None:
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)


def _printed_maximum(system: str, name: str) -> tuple[ReproductionCheck, ReproductionCheck]:
    interval, best = PRINTED_BEST[system]
    return (
        as_printed(f"{name}.utilization", best, "", lambda table: _best(table, system)["utilization"], EQ_10_HIGHER),
        as_printed(
            f"{name}.interval", interval, "min", lambda table: _best(table, system)["interval_min"], COST_HIGHER
        ),
    )


def _maximum_is_at_the_formula(*systems: str) -> ReproductionCheck:
    def distances(table: pd.DataFrame) -> pd.DataFrame:
        best = optimal_interval(RATE_PER_MIN, COST_MIN)
        return pd.DataFrame({"distance_min": [abs(_best(table, each)["interval_min"] - best) for each in systems]})

    return holds(
        "maximum.at_the_formula",
        distances,
        [between("distance_min", 0, 1e-3)],
        lambda frame: f"{frame['distance_min'].max():.1g} min apart",
        "the maximum of the curve is at T* within .001 min",
        OPTIMUM_LONGER,
    )


REPRODUCTIONS = (
    Reproduction(
        "utilization/fig-04",
        "U over T, one process",
        compute=lambda size, tell: over_interval(ONE_PROCESS),
        plot=plot_over_interval,
        checks=(*_printed_maximum(ONE_PROCESS, "maximum"), _maximum_is_at_the_formula(ONE_PROCESS)),
        searched=frozenset({"interval_min"}),
    ),
    Reproduction(
        "utilization/fig-10",
        "U over T, a topology of 50 operators",
        compute=lambda size, tell: over_interval(TOPOLOGY),
        plot=plot_over_interval,
        checks=(*_printed_maximum(TOPOLOGY, "maximum"), _maximum_is_at_the_formula(TOPOLOGY)),
        searched=frozenset({"interval_min"}),
    ),
    Reproduction(
        "utilization/fig-11",
        "U over T, one process against a topology of 50 operators",
        compute=both_systems,
        plot=plot_over_interval,
        checks=(
            *_printed_maximum(ONE_PROCESS, "one_process"),
            *_printed_maximum(TOPOLOGY, "topology"),
            _maximum_is_at_the_formula(ONE_PROCESS, TOPOLOGY),
            holds(
                "decrease.about_11_5_percent",
                lambda table: pd.DataFrame({"percent": [DECREASE(table)]}),
                [between("percent", 11.45, 11.55)],
                lambda frame: f"{frame['percent'].iat[0]:.2f} %",
                "11.5 % (the paper prints 11.6 %, from figures that it has rounded)",
                DELAY_HIGHER,
            ),
        ),
        searched=frozenset({"interval_min"}),
    ),
    Reproduction(
        "utilization/fig-14",
        "U at T* by the depth of the topology",
        compute=over_depth,
        plot=plot_over_depth,
        checks=(
            as_printed(
                "utilization.at_15000",
                PRINTED_DEEP[15_000],
                "",
                figure_at("utilization", depth=15_000),
                scaled("eq. 10 at T*", "models.utilization:optimal_utilization", 1.01),
            ),
            holds(
                "utilization.falls",
                lambda table: pd.DataFrame({"falls": np.diff(table["utilization"]) < 0}),
                [in_set("falls", True)],
                lambda frame: f"{frame['falls'].sum()} of {len(frame)} steps fall",
                "U falls with every step of n",
                DEPTH_IGNORED,
            ),
        ),
    ),
)
