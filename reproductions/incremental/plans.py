"""`incremental`, figures 2 and 16: which failed partitions to recover first.

The ticks of figure 16 are lost: the resource share goes here from .1 to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from models.recovery.best_density import best_density
from models.recovery.dynamic_programming import dynamic_programming
from models.recovery.examples import FIGURE_2_FAILED, FIGURE_2_NODE_CAPACITY, FIGURE_2_QUERIES, figure_2_topology
from models.recovery.operator_centric import operator_centric
from models.recovery.problem import RecoveryPlan, RecoveryProblem, recovery_problem
from models.recovery.random_queries import Priorities, QuerySpec, UniformSharing, ZipfSharing, random_queries
from models.recovery.schedule import Arrival, incremental_schedule
from reproductions.comparison import (
    all_with_everything,
    better_setting,
    by_algorithm,
    mean_above,
    mean_rises,
    never_above,
    often_optimal,
    plot_comparison,
    scarce,
    summarize,
)
from reproductions.plants import InCode, Plant, put
from reproductions.reproduction import Progress, Reproduction, ReproductionCheck, Size, holds
from results.checks.rules import between, pairs_equal
from results.views.style import INK, SKY, new_figure

Planner = Callable[[RecoveryProblem], RecoveryPlan]
NODES = 5
OPERATOR_CENTRIC, QUERY_CENTRIC = "operator-centric", "query-centric"
PARADIGMS = {OPERATOR_CENTRIC: operator_centric, QUERY_CENTRIC: best_density}
PRINTED = {  # what each node recovers, and which queries are complete with it
    OPERATOR_CENTRIC: (("p3 p4", ""), ("p5 p6", ""), ("p7 p8", ""), ("p9 p10", "Q1 Q2"), ("p11 p12", "Q3 Q4")),
    QUERY_CENTRIC: (("p3 p5", ""), ("p7 p9", "Q1"), ("p4 p10", "Q2"), ("p6 p8", ""), ("p11 p12", "Q3 Q4")),
}
WHY = "a plan takes whole queries: capacity that completes none waits for the next node, and is spent by the same time"

SHARES = tuple(np.round(np.arange(0.1, 1.05, 0.1), 1).tolist())
RISES_FROM = 0.3  # below it operator-centric may recover nothing
OPTIMUM, BEST_DENSITY = "DP", "BestDensity"
PLANNERS = {OPTIMUM: dynamic_programming, BEST_DENSITY: best_density, OPERATOR_CENTRIC: operator_centric}
TOPOLOGIES = Size("topologies for each setting", default=100, paper=100, least=2)
SEED = 1
CLOSE, CLOSE_ON_AVERAGE, MOSTLY = 0.05, 0.01, 0.7
VISIBLE = 0.01  # what a figure can show
PARTITIONS = 60  # that queries draw from in panel (b): about as many as there are in panel (a)
BY_3, BY_6 = "shared by at most 3", "shared by at most 6"
LESS_SKEW, MORE_SKEW = "Zipf, s = .2", "Zipf, s = .5"
RANDOM, BY_WORKLOAD = "random priorities", "priorities by workload"
PANELS = {
    "a": {BY_3: QuerySpec(UniformSharing(3)), BY_6: QuerySpec(UniformSharing(6))},
    "b": {
        LESS_SKEW: QuerySpec(ZipfSharing(0.2, PARTITIONS)),
        MORE_SKEW: QuerySpec(ZipfSharing(0.5, PARTITIONS)),
    },
    "c": {
        RANDOM: QuerySpec(UniformSharing(3)),
        BY_WORKLOAD: QuerySpec(UniformSharing(3), priorities=Priorities.WORKLOAD),
    },
}


def schedules(size: int, tell: Progress) -> pd.DataFrame:
    """Figure 2: what is recovered with each node that arrives, beside the table that the paper prints."""
    problem = recovery_problem(figure_2_topology(), FIGURE_2_FAILED, 0.0)
    arrivals = [Arrival(float(node), FIGURE_2_NODE_CAPACITY) for node in range(1, NODES + 1)]
    names = {partition: query for query, partition in FIGURE_2_QUERIES.items()}
    rows = []
    for paradigm, planner in PARADIGMS.items():
        for step in incremental_schedule(problem, arrivals, planner).steps[1:]:
            node = int(step.at_s)
            printed, printed_queries = PRINTED[paradigm][node - 1]
            partitions = " ".join(task.split(".")[0] for task in figure_2_topology().names(step.plan.partitions))
            facts = {"paradigm": paradigm, "node": node, "partitions": partitions, "printed_partitions": printed}
            facts |= {"queries": " ".join(names[query] for query in step.plan.queries)}
            rows.append(facts | {"printed_queries": printed_queries, "why": WHY if partitions != printed else None})
    return pd.DataFrame(rows)


def plot_schedules(table: pd.DataFrame) -> Figure:
    """Queries recovered by nodes that have arrived: a staircase for each paradigm, from `schedules`."""
    figure, axes = new_figure(3.3)
    looks: dict[str, dict[str, Any]] = {  # wide below narrow: both show where they are equal
        QUERY_CENTRIC: {"color": SKY, "lw": 6, "ms": 11, "alpha": 0.8},
        OPERATOR_CENTRIC: {"color": INK, "lw": 1.8, "ms": 4, "ls": "--"},
    }
    for paradigm, look in looks.items():
        rows = table[table["paradigm"] == paradigm]
        counts = np.r_[0, rows["queries"].str.split().str.len().cumsum()]
        nodes = np.r_[0, rows["node"]]
        axes.step(nodes, counts, where="post", marker="o", label=paradigm, **look)
    axes.set(xlabel="nodes that have arrived, each for 2 partitions", ylabel="queries recovered", ylim=(-0.25, 4.25))
    axes.set(xticks=range(NODES + 1), yticks=range(5))
    axes.legend(loc="upper left")
    return figure


def compare(panel: str, size: int, tell: Progress) -> pd.DataFrame:
    """Figure 16: the share of the priority that each algorithm recovers, by share of the resources."""
    rows: list[dict[str, object]] = []
    for setting, spec in PANELS[panel].items():
        for number, seed in enumerate(np.random.SeedSequence(SEED).spawn(size)):
            tell(len(rows), len(PANELS[panel]) * size * len(SHARES) * len(PLANNERS))
            problem = random_queries(spec, np.random.default_rng(seed))
            for share in SHARES:
                scarce = problem.with_capacity(share * float(problem.costs.sum()))
                facts = {"setting": setting, "share": share, "problem": number}
                values = {name: plan(scarce).priority / problem.priorities.sum() for name, plan in PLANNERS.items()}
                facts["bound"] = values[OPTIMUM]
                rows.extend(facts | {"algorithm": name, "value": value} for name, value in values.items())
    return summarize(rows)


def _worth(algorithm: str, at: str, factor: float) -> InCode:
    """A planner whose plans recover so many times the priority."""

    def change(sound: Planner) -> Planner:
        def wrong(problem: RecoveryProblem) -> RecoveryPlan:
            plan = sound(problem)
            return plan._replace(priority=factor * plan.priority)

        return wrong

    return InCode(f"{algorithm} x {factor:g}", at, change)


def _drawn(what: str, panel: str, setting: str, spec: QuerySpec) -> InCode:
    """One setting of a panel with other problems."""
    return InCode(
        what, "reproductions.incremental.plans:PANELS", lambda all_: all_ | {panel: all_[panel] | {setting: spec}}
    )


def _nothing_of_shared_by_more_than(most: int) -> InCode:
    """Operator-centric without any result where more queries than that share a partition."""

    def change(sound: Planner) -> Planner:
        return lambda problem: sound(problem)._replace(priority=0.0) if problem.shares.max() > most else sound(problem)

    what = f"operator-centric := 0 where more than {most} queries share a partition"
    return InCode(what, "models.recovery.operator_centric:operator_centric", change)


def _best_density_is_close() -> ReproductionCheck:
    def shortfall(table: pd.DataFrame) -> pd.DataFrame:
        means = by_algorithm(table)
        short = 1 - means[BEST_DENSITY] / means[OPTIMUM]
        return pd.DataFrame({"shortfall": short, "shortfall_on_average": scarce(short.reset_index())[0].mean()})

    return holds(
        "best_density.close_to_dp",
        shortfall,
        [between("shortfall", None, CLOSE), between("shortfall_on_average", None, CLOSE_ON_AVERAGE)],
        lambda frame: (
            f"{frame['shortfall'].max():.2%} below DP at most,"
            f" {frame['shortfall_on_average'].iat[0]:.2%} on average where resources are scarce"
        ),
        f"below the optimum of DP at most {CLOSE:.0%} at any point and {CLOSE_ON_AVERAGE:.0%} on average"
        " where resources are scarce",
        BEST_DENSITY_LESS,
    )


BEST_DENSITY_LESS = _worth(BEST_DENSITY, "models.recovery.best_density:best_density", 0.97)
DP_LESS = _worth(OPTIMUM, "models.recovery.dynamic_programming:dynamic_programming", 0.99)
NOTHING = _worth(OPERATOR_CENTRIC, "models.recovery.operator_centric:operator_centric", 0.0)
BY_QUERY = put("operator-centric := BestDensity", "models.recovery.operator_centric:operator_centric", best_density)
BY_OPERATOR = put("BestDensity := operator-centric", "models.recovery.best_density:best_density", operator_centric)
COMPARED = (
    _best_density_is_close(),
    often_optimal(
        "best_density.mostly_optimal",
        BEST_DENSITY,
        MOSTLY,
        f"the optimum itself on at least {MOSTLY:.0%} of all problems",
        BEST_DENSITY_LESS,
    ),
    never_above("dp.never_below", "on no single topology a heuristic above the optimum", DP_LESS),
    mean_above(
        "operator_centric.worst",
        BEST_DENSITY,
        OPERATOR_CENTRIC,
        OPTIMUM,
        "the mean of operator-centric is below that of BestDensity at every point",
        BY_QUERY,
    ),
    mean_rises(
        "resources.help",
        tuple(PLANNERS),
        RISES_FROM,
        f"the mean of each algorithm rises with the resources, at every step from {RISES_FROM:.0%} on",
        NOTHING,
    ),
    all_with_everything(
        "resources.all", tuple(PLANNERS), "with all the resources each algorithm recovers everything", NOTHING
    ),
)
SHARED_LESS = _drawn(f"{BY_6} drawn as {BY_3}", "a", BY_6, PANELS["a"][BY_3])
SPREAD = _drawn(
    "three times as many partitions to draw from at s = .5",
    "b",
    MORE_SKEW,
    QuerySpec(ZipfSharing(0.5, 3 * PARTITIONS)),
)
LARGER = _drawn(
    "queries of 12 to 18 partitions at s = .5",
    "b",
    MORE_SKEW,
    QuerySpec(ZipfSharing(0.5, PARTITIONS), fewest=12, most=18),
)
ALL_RANDOM = _drawn(f"{BY_WORKLOAD} drawn as {RANDOM}", "c", BY_WORKLOAD, PANELS["c"][RANDOM])
TRENDS = {  # what section 7.3 says of each panel
    "a": (
        better_setting("sharing.costs_best_density", BEST_DENSITY, BY_3, BY_6, SHARED_LESS),
        better_setting("sharing.costs_dp", OPTIMUM, BY_3, BY_6, SHARED_LESS),
        better_setting(
            "sharing.costs_operator_centric",
            OPERATOR_CENTRIC,
            BY_3,
            BY_6,
            _nothing_of_shared_by_more_than(3),
            fails="with our generator more sharing leaves fewer partitions to recover before the outputs",
        ),
    ),
    "b": (
        better_setting(
            "skew.helps_best_density",
            BEST_DENSITY,
            MORE_SKEW,
            LESS_SKEW,
            SPREAD,
            VISIBLE,
            fails="with our generator these skews differ too little to change it",
        ),
        better_setting(
            "skew.costs_operator_centric",
            OPERATOR_CENTRIC,
            LESS_SKEW,
            MORE_SKEW,
            LARGER,
            fails="with our generator more skew leaves fewer partitions to recover before the outputs",
        ),
    ),
    "c": (
        better_setting("workload.costs_best_density", BEST_DENSITY, RANDOM, BY_WORKLOAD, ALL_RANDOM),
        better_setting("workload.costs_dp", OPTIMUM, RANDOM, BY_WORKLOAD, ALL_RANDOM),
    ),
}


def _printed(column: str, paradigm: str, plant: Plant) -> ReproductionCheck:
    return holds(
        f"{paradigm}.{column}",
        lambda table: table[table["paradigm"] == paradigm],
        [pairs_equal(column, f"printed_{column}")],
        lambda frame: "; ".join(
            f"N{node}: {found}" for node, found in zip(frame["node"], frame[column], strict=True) if found
        ),
        "; ".join(f"N{node}: {queries}" for node, (_, queries) in enumerate(PRINTED[paradigm], start=1) if queries),
        plant,
    )


def _panel(panel: str, what: str) -> Reproduction:
    return Reproduction(
        f"incremental/fig-16{panel}",
        f"recovered priority by resources: {what}",
        compute=partial(compare, panel),
        plot=partial(
            plot_comparison, share="resources / cost of all that failed", value="recovered priority / all priority"
        ),
        checks=(*COMPARED, *TRENDS[panel]),
        size=TOPOLOGIES,
    )


REPRODUCTIONS = (
    Reproduction(
        "incremental/fig-02",
        "queries recovered as nodes arrive, operator-centric and query-centric",
        compute=schedules,
        plot=plot_schedules,
        checks=(
            _printed("queries", OPERATOR_CENTRIC, BY_QUERY),
            _printed("queries", QUERY_CENTRIC, BY_OPERATOR),
        ),
    ),
    _panel("a", "sharing"),
    _panel("b", "skewed sharing"),
    _panel("c", "priorities"),
)
