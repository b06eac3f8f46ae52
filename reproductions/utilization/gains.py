"""`utilization`, section 5: what T* gains over 30 minutes on real systems and by node count, and over other models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from models.gain import gain
from models.utilization import Values, daly, optimal_interval, optimal_utilization, utilization, zhuang
from reproductions.plants import InCode, Plant, put, scaled
from reproductions.printed import ROUNDS, beside_printed, figure_at
from reproductions.reproduction import Progress, Reproduction, ReproductionCheck, as_printed, holds
from reproductions.searching import Floats, crossing, highest
from results.checks.rules import between, in_set
from results.views.style import BLUE, GREEN, INK, ORANGE, PAPER, RED, WIDTH_IN, new_figure

HOUR_S, MINUTE_S = 3600.0, 60.0
DEFAULT_S = 1800.0  # the 30 minutes that T* is compared with
RECOVERY_S, COST_S, HOP_DELAY_S, DEPTH = 30.0, 5.0, 0.05, 5
SYSTEMS = {0.8475: "18.91", 0.1701: "2.4", 0.135: "1.73", 0.1161: "1.4", 0.0606: "0.5"}  # failures per hour: gain [%]
WHY = {"1.73": "a slip: eq. 10 gives 1.744 at .135 per hour, and 1.73 only at .1344 per hour"}
DEFAULT_COST_S, PRINTED_DEFAULT = 1.0, "0.0022"  # c, and the failures per hour for which 30 minutes is the optimum

NODE_RATE_PER_HOUR, MOST_NODES = 0.0022, 2000
NODES = np.r_[1, np.arange(10, MOST_NODES + 1, 10)]
NODE_COSTS_S = (5.0, 30.0, 120.0)
PRINTED_BY_NODES = {1000: "68.8", 2000: "226.83"}
LITTLE, MUCH = "(a) c = 10 s, R = 30 s", "(b) c = 2 min, R = 5 min"
PANELS = {LITTLE: (10.0, 30.0), MUCH: (120.0, 300.0)}  # c [s], R [s]
RATES_PER_HOUR = np.arange(1.0, 12.01, 0.25)
MODELS: dict[str, Callable[[Floats, float, float], Values]] = {
    "this model": lambda rate, cost, recovery: optimal_interval(rate, cost),
    "Daly": daly,
    "Zhuang": zhuang,
}
COLOURS = {"this model": BLUE, "Daly": ORANGE, "Zhuang": GREEN}
DASHES = {"this model": "-", "Daly": "--", "Zhuang": ":"}  # where the curves coincide all of them show
PRINTED_GAINS = {"Daly": "2.3", "Zhuang": "3.7"}  # [%] at 11 failures per hour
AT_PER_HOUR = 11.0
NEAR = 0.02  # "near similar": within 2 %
AT_OPTIMUM = 1e-4  # of T*: how near a search of the maximum of U comes


def gain_percent(rate_per_s: Values, cost_s: float) -> Values:
    """What T* gains in U over an interval of 30 minutes (R, δ and n cancel)."""
    return 100 * gain(rate_per_s, cost_s, optimal_interval(rate_per_s, cost_s), DEFAULT_S)


def systems(size: int, tell: Progress) -> pd.DataFrame:
    """The five systems, and the rate at which 30 minutes is the optimum for c = 1 s."""
    default = crossing(lambda rate: float(optimal_interval(rate / HOUR_S, DEFAULT_COST_S)) - DEFAULT_S, 1e-4, 1e-1)
    table = pd.DataFrame([*(_system(rate, COST_S) for rate in SYSTEMS), _system(default, DEFAULT_COST_S)])
    table = beside_printed(table, "gain_percent", [*SYSTEMS.values(), None], WHY)
    return beside_printed(table, "failure_rate_per_hour", [None] * len(SYSTEMS) + [PRINTED_DEFAULT])


def _system(rate_per_hour: float, cost_s: float) -> dict[str, float]:
    rate = rate_per_hour / HOUR_S
    return {
        "failure_rate_per_hour": rate_per_hour,
        "checkpoint_cost_s": cost_s,
        "utilization_at_30_min": float(utilization(rate, cost_s, RECOVERY_S, DEFAULT_S, HOP_DELAY_S, DEPTH)),
        "optimal_interval_min": float(optimal_interval(rate, cost_s)) / MINUTE_S,
        "utilization_at_optimum": float(optimal_utilization(rate, cost_s, RECOVERY_S, HOP_DELAY_S, DEPTH)),
        "gain_percent": float(gain_percent(rate, cost_s)),
    }


def plot_systems(table: pd.DataFrame) -> Figure:
    """Dots, whose axis needs no zero: gains span a factor of 40."""
    figure, axes = new_figure(3.5)
    rows = table.dropna(subset="printed_gain_percent")
    places = -np.arange(len(rows))
    axes.plot(rows["printed_gain_percent"], places, "o", color=ORANGE, ms=11, mfc="none", mew=2, label="printed")
    axes.plot(rows["gain_percent"], places, "o", color=BLUE, ms=5, label="eq. 10")
    for place, (_, row) in zip(places, rows.iterrows(), strict=True):
        differs = pd.notna(row["why"]) and row["why"] != ROUNDS
        note = f"{row['gain_percent']:.3f}, printed {row['printed_gain_percent']:g}"
        axes.annotate(
            f"{note}, which it does not round to" if differs else note,
            (row["gain_percent"], place), (12, 0), textcoords="offset points", va="center", fontsize=9,
            color=RED if differs else INK,
        )  # fmt: skip
    axes.set_yticks(places, [f"{rate:g}" for rate in rows["failure_rate_per_hour"]])
    axes.set(ylabel="failure rate of the system [1/h]", xlabel="gain in U over T = 30 min [%]")
    axes.set(xscale="log", xlim=(0.3, 60), ylim=(places[-1] - 0.6, 0.6), xticks=[0.5, 1, 2, 5, 10, 20, 50])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.legend(loc="lower right")
    return figure


def by_nodes(size: int, tell: Progress) -> pd.DataFrame:
    """Figure 13, and the same at higher checkpoint costs, of which the text says that they reduce the gain."""
    rates = NODES * NODE_RATE_PER_HOUR
    parts = []
    for cost_s in NODE_COSTS_S:
        part = {"nodes": NODES, "failure_rate_per_hour": rates, "checkpoint_cost_s": cost_s}
        parts.append(pd.DataFrame(part | {"gain_percent": gain_percent(rates / HOUR_S, cost_s)}))
    table = pd.concat(parts, ignore_index=True)
    printed = table["nodes"].map(PRINTED_BY_NODES).where(table["checkpoint_cost_s"] == COST_S)
    return beside_printed(table, "gain_percent", printed)


def plot_by_nodes(table: pd.DataFrame) -> Figure:
    """Figure 13 from the table of `by_nodes`: the gain [%] for each cost, and the failure rate [1/h] below it."""
    figure = Figure(figsize=(WIDTH_IN, 4.8), layout="constrained")
    gain, rate = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    for cost_s, colour in zip(NODE_COSTS_S, (BLUE, GREEN, RED), strict=True):
        rows = table[table["checkpoint_cost_s"] == cost_s]
        gain.plot(rows["nodes"], rows["gain_percent"], color=colour, label=f"c = {cost_s:g} s")
    printed = table.dropna(subset="printed_gain_percent")
    gain.plot(
        printed["nodes"], printed["printed_gain_percent"], "o", color=ORANGE, mec=PAPER, ms=8, label="printed (c = 5 s)"
    )
    rate.plot(rows["nodes"], rows["failure_rate_per_hour"], color=INK)
    gain.set(ylabel="gain in U over T = 30 min [%]", ylim=(0, None), xlim=(0, MOST_NODES * 1.02))
    rate.set(ylabel="failures [1/h]", xlabel="nodes, each failing at .0022 per hour", ylim=(0, None))
    gain.legend()
    return figure


def intervals(size: int, tell: Progress) -> pd.DataFrame:
    """Figure 15: the interval that each model advises, by failure rate, and the U that it yields by eq. 10.

    `off_optimum` is how far it lies from the maximum of eq. 10 that a search finds, which knows no formula for T*;
    `loss_percent` what that maximum has over the U at it.
    """
    parts = []
    for panel, (cost_s, recovery_s) in PANELS.items():
        rate = RATES_PER_HOUR / HOUR_S
        best_s = highest(partial(_utilization, rate, cost_s, recovery_s), np.full(rate.shape, cost_s), 2.0 / rate)
        best = _utilization(rate, cost_s, recovery_s, best_s)
        for model, advise in MODELS.items():
            found_s = np.asarray(advise(rate, cost_s, recovery_s))
            part = {"panel": panel, "model": model, "failure_rate_per_hour": RATES_PER_HOUR}
            part |= {"interval_min": found_s / MINUTE_S, "off_optimum": found_s / best_s - 1}
            reached = _utilization(rate, cost_s, recovery_s, found_s)
            part |= {"utilization": reached, "loss_percent": 100 * (best / reached - 1)}
            parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def _utilization(rate: Floats, cost_s: float, recovery_s: float, interval_s: Floats) -> Floats:
    """U of the topology of figures 15 and 16, δ = 30 s and n = 25."""
    return np.asarray(utilization(rate, cost_s, recovery_s, interval_s, 30.0, 25))


def plot_intervals(table: pd.DataFrame) -> Figure:
    """Figure 15 from the table of `intervals`: the interval [min] that each model advises, a panel a setting."""
    figure = Figure(figsize=(WIDTH_IN, 3.9), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, (panel, rows) in zip(panels, table.groupby("panel"), strict=True):
        for model, part in rows.groupby("model", sort=False):
            axes.plot(
                part["failure_rate_per_hour"], part["interval_min"], DASHES[model], color=COLOURS[model], label=model
            )
        axes.set(title=panel, xlabel="failure rate [1/h]", ylim=(0, None))
        axes.legend()
    panels[0].set_ylabel("checkpoint interval [min]")
    return figure


def gains(size: int, tell: Progress) -> pd.DataFrame:
    """Figure 16: what T* gains in U over the intervals of Daly and of Zhuang et al. in panel (b) of figure 15."""
    table = intervals(size, tell)
    table = table[(table["panel"] == MUCH) & (table["model"] != "this model")].reset_index(drop=True)
    rate, (cost_s, recovery_s) = table["failure_rate_per_hour"].to_numpy() / HOUR_S, PANELS[MUCH]
    best_s = optimal_interval(rate, cost_s)
    printed = table["model"].map(PRINTED_GAINS).where(table["failure_rate_per_hour"] == AT_PER_HOUR)
    table = table.drop(columns=["panel", "off_optimum", "loss_percent"]).assign(
        optimal_utilization=optimal_utilization(rate, cost_s, recovery_s, 30.0, 25),
        gain_percent=100 * gain(rate, cost_s, best_s, table["interval_min"].to_numpy() * MINUTE_S),
    )
    return beside_printed(table, "gain_percent", printed)


def plot_gains(table: pd.DataFrame) -> Figure:
    """Figure 16 from the table of `gains`: what T* gains [%] over each other model, and the printed points."""
    figure, axes = new_figure(3.9)
    for model, rows in table.groupby("model", sort=False):
        axes.plot(rows["failure_rate_per_hour"], rows["gain_percent"], color=COLOURS[model], label=f"over {model}")
    printed = table.dropna(subset="printed_gain_percent")
    axes.plot(
        printed["failure_rate_per_hour"], printed["printed_gain_percent"], "D", color=RED, mec=PAPER, label="printed"
    )
    axes.set(xlabel="failure rate [1/h]", ylabel="gain in U by T* [%]", ylim=(0, None))
    axes.legend()
    return figure


def _gain_scaled(factor: float) -> Plant:
    return scaled("the gain by eq. 10", "models.gain:gain", factor)


def _system_checks() -> tuple[ReproductionCheck, ...]:
    """Each notices an error of its gain as soon as the digits that are printed can show it: of "0.5" 15 %."""
    noticed = {0.8475: 1.001, 0.1701: 1.03, 0.135: 0.992, 0.1161: 1.05, 0.0606: 1.15}
    found = []
    for rate, text in SYSTEMS.items():
        ours = figure_at("gain_percent", failure_rate_per_hour=rate)
        plant = _gain_scaled(noticed[rate])
        found.append(as_printed(f"gain.at_{rate:g}_per_hour", text, "%", ours, plant, WHY.get(text, "")))
    default = figure_at("failure_rate_per_hour", checkpoint_cost_s=DEFAULT_COST_S)
    plant = scaled("T*", "models.utilization:optimal_interval", 1.03)
    return (*found, as_printed("default.optimal_at", PRINTED_DEFAULT, "per hour", default, plant))


def _node_checks() -> tuple[ReproductionCheck, ...]:
    printed = [
        as_printed(
            f"gain.at_{n}_nodes",
            text,
            "%",
            figure_at("gain_percent", nodes=n, checkpoint_cost_s=COST_S),
            _gain_scaled(1.001),
        )
        for n, text in PRINTED_BY_NODES.items()
    ]
    cost_ignored = InCode(
        "gains at one checkpoint cost, whatever it is",
        "reproductions.utilization.gains:gain_percent",
        lambda sound: lambda rate, cost_s: sound(rate, COST_S),
    )
    many = put("only 80 nodes and more", "reproductions.utilization.gains:NODES", NODES[NODES >= 80])
    return (
        *printed,
        _falls_with_cost(
            "gain.falls_with_cost",
            1,
            many,
            fails="not up to 70 nodes, where T* is above 30 minutes for the higher cost",
        ),
        _falls_with_cost("gain.falls_with_cost_from_1000", 1000, cost_ignored),
    )


def _falls_with_cost(name: str, nodes: int, plant: Plant, fails: str = "") -> ReproductionCheck:
    """What the text says without a limit: "As the checkpointing cost increases, percentage utilization ... reduces"."""

    def falls(table: pd.DataFrame) -> pd.DataFrame:
        wide = table.pivot(index="nodes", columns="checkpoint_cost_s", values="gain_percent")
        steps = wide[wide.index >= nodes].diff(axis=1).iloc[:, 1:]
        return pd.DataFrame({"step_percent": steps.to_numpy().ravel()})

    return holds(
        name,
        falls,
        [between("step_percent", None, -1e-9)],
        lambda frame: f"{(frame['step_percent'] < 0).sum()} of {len(frame)} steps fall",
        f"a higher checkpoint cost reduces the gain, at each number of nodes from {nodes} on",
        plant,
        fails,
    )


def _interval_checks() -> tuple[ReproductionCheck, ...]:
    daly_longer = scaled("Daly", "models.utilization:daly", 1.03)
    without_recovery = InCode(
        "Daly and Zhuang without R",
        "models.utilization:daly",
        lambda sound: lambda rate, cost, recovery: sound(rate, cost, 0),
    )

    def others(panel: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
        return lambda table: table[(table["panel"] == panel) & (table["model"] != "this model")]

    def loss(model: str) -> Callable[[pd.DataFrame], float]:
        return figure_at("loss_percent", panel=MUCH, model=model, failure_rate_per_hour=AT_PER_HOUR)

    def text(frame: pd.DataFrame) -> str:
        return f"{100 * frame['off_optimum'].min():.2g} to {100 * frame['off_optimum'].max():.3g} % off the optimum"

    return (
        holds(
            "t_star.is_the_optimum",
            lambda table: table[table["model"] == "this model"],
            [between("off_optimum", -AT_OPTIMUM, AT_OPTIMUM)],
            text,
            "T* is where a search finds the highest U of eq. 10, within .01 %",
            scaled("T*", "models.utilization:optimal_interval", 1.001),
        ),
        holds(
            "near.where_costs_are_small",
            others(LITTLE),
            [between("off_optimum", -NEAR, NEAR)],
            text,
            f"within {NEAR:.0%} of the optimum",
            daly_longer,
        ),
        *(
            as_printed(f"apart.{each.lower()}_loses", text, "%", loss(each), daly_longer)
            for each, text in PRINTED_GAINS.items()
        ),
        holds(
            "apart.grows_with_the_rate",
            lambda table: _growth(others(MUCH)(table)),
            [in_set("grows", True)],
            lambda frame: f"{frame['grows'].sum()} of {len(frame)} steps grow",
            "the higher the failure rate, the farther above the optimum",
            without_recovery,
        ),
    )


def _growth(table: pd.DataFrame) -> pd.DataFrame:
    """Whether what a model advises is farther above the optimum at each failure rate than at the one before."""
    wide = table.pivot(index="failure_rate_per_hour", columns="model", values="off_optimum")
    return pd.DataFrame({"grows": (np.diff(wide, axis=0) > 0).ravel()})


def _gain_checks() -> tuple[ReproductionCheck, ...]:
    def gain_over(model: str) -> Callable[[pd.DataFrame], float]:
        return figure_at("gain_percent", model=model, failure_rate_per_hour=AT_PER_HOUR)

    daly_longer = scaled("Daly", "models.utilization:daly", 1.03)
    return (
        *(
            as_printed(f"gain.over_{each.lower()}", text, "%", gain_over(each), daly_longer)
            for each, text in PRINTED_GAINS.items()
        ),
        holds(
            "gain.not_below_zero",
            lambda table: table[["gain_percent"]],
            [between("gain_percent", 0, None)],
            lambda frame: f"{frame['gain_percent'].min():.2g} to {frame['gain_percent'].max():.2g} %",
            "no other interval has a higher U",
            scaled("T*", "models.utilization:optimal_interval", 1.03),
        ),
    )


REPRODUCTIONS = (
    Reproduction(
        "utilization/systems", "gain of T* over 30 minutes for five real failure rates",
        systems, plot_systems, _system_checks(),
    ),
    Reproduction(
        "utilization/fig-13", "failure rate and gain of T* over 30 minutes by node count",
        by_nodes, plot_by_nodes, _node_checks(),
    ),
    Reproduction(
        "utilization/fig-15", "T* against the intervals of Daly and of Zhuang et al.",
        intervals, plot_intervals, _interval_checks(), searched=frozenset({"off_optimum"}),
    ),
    Reproduction(
        "utilization/fig-16", "gain in U of T* over the intervals of Daly and of Zhuang et al.",
        gains, plot_gains, _gain_checks(),
    ),
)  # fmt: skip
