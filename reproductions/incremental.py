"""`incremental`, figures 2 and 16: which failed partitions to recover first.

The ticks of figure 16 are lost: the resource share goes here from .1 to .9.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from models.recovery.best_density import best_density
from models.recovery.dynamic_programming import dynamic_programming
from models.recovery.examples import FIGURE_2_FAILED, FIGURE_2_NODE_CAPACITY, FIGURE_2_QUERIES, figure_2_topology
from models.recovery.operator_centric import operator_centric
from models.recovery.problem import recovery_problem
from models.recovery.random_queries import Priorities, QuerySpec, UniformSharing, ZipfSharing, random_queries
from models.recovery.schedule import Arrival, incremental_schedule
from reproductions.comparison import by_algorithm, mean_never_below, never_above, plot_comparison, summarize
from reproductions.reproduction import Check, Progress, Reproduction, Size, holds
from results.checks.rules import between, pairs_equal
from results.style import INK, SKY, new_figure

NODES = 5
OPERATOR_CENTRIC, QUERY_CENTRIC = "operator-centric", "query-centric"
PARADIGMS = {OPERATOR_CENTRIC: operator_centric, QUERY_CENTRIC: best_density}
PRINTED = {  # what each node recovers, and which queries are complete with it
    OPERATOR_CENTRIC: (("p3 p4", ""), ("p5 p6", ""), ("p7 p8", ""), ("p9 p10", "Q1 Q2"), ("p11 p12", "Q3 Q4")),
    QUERY_CENTRIC: (("p3 p5", ""), ("p7 p9", "Q1"), ("p4 p10", "Q2"), ("p6 p8", ""), ("p11 p12", "Q3 Q4")),
}
WHY = "a plan takes whole queries: capacity that completes none waits for the next node, and is spent by the same time"

SHARES = tuple(np.round(np.arange(0.1, 0.95, 0.1), 1).tolist())
OPTIMUM = "DP"
PLANNERS = {OPTIMUM: dynamic_programming, "BestDensity": best_density, OPERATOR_CENTRIC: operator_centric}
TOPOLOGIES = Size("topologies for each setting", default=100, paper=100, least=2)
SEED = 1
CLOSE = 0.05
PARTITIONS = 60  # that queries draw from in panel (b): about as many as there are in panel (a)
PANELS = {
    "a": {
        "shared by at most 3": QuerySpec(UniformSharing(3)),
        "shared by at most 6": QuerySpec(UniformSharing(6)),
    },
    "b": {
        "Zipf, s = .2": QuerySpec(ZipfSharing(0.2, PARTITIONS)),
        "Zipf, s = .5": QuerySpec(ZipfSharing(0.5, PARTITIONS)),
    },
    "c": {
        "random priorities": QuerySpec(UniformSharing(3)),
        "priorities by workload": QuerySpec(UniformSharing(3), priorities=Priorities.WORKLOAD),
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
    figure, axes = new_figure(3.3)
    looks = {  # wide below narrow: both show where they are equal
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
    rows = []
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


def _best_density_is_close() -> Check:
    def shortfall(table: pd.DataFrame) -> pd.DataFrame:
        means = by_algorithm(table)
        return pd.DataFrame({"shortfall": 1 - means["BestDensity"] / means["DP"]})

    return holds(
        "best_density.close_to_dp",
        shortfall,
        [between("shortfall", None, CLOSE)],
        lambda frame: f"{frame['shortfall'].max():.2%} below DP at most, {frame['shortfall'].mean():.2%} on average",
        f"at every point at most {CLOSE:.0%} below the optimum of DP",
    )


COMPARED = (
    _best_density_is_close(),
    never_above("dp.never_below", "on no single topology a heuristic above the optimum"),
    mean_never_below(
        "operator_centric.worst",
        "BestDensity",
        (OPERATOR_CENTRIC,),
        "the mean of operator-centric is not above that of BestDensity at any point",
    ),
)


def _printed(column: str, paradigm: str) -> Check:
    return holds(
        f"{paradigm}.{column}",
        lambda table: table[table["paradigm"] == paradigm],
        [pairs_equal(column, f"printed_{column}")],
        lambda frame: "; ".join(
            f"N{node}: {found}" for node, found in zip(frame["node"], frame[column], strict=True) if found
        ),
        "; ".join(f"N{node}: {queries}" for node, (_, queries) in enumerate(PRINTED[paradigm], start=1) if queries),
    )


def _panel(panel: str, what: str) -> Reproduction:
    return Reproduction(
        f"incremental/fig-16{panel}",
        f"recovered priority by resources: {what}",
        compute=partial(compare, panel),
        plot=partial(
            plot_comparison, share="resources / cost of all that failed", value="recovered priority / all priority"
        ),
        checks=COMPARED,
        size=TOPOLOGIES,
    )


REPRODUCTIONS = (
    Reproduction(
        "incremental/fig-02",
        "queries recovered as nodes arrive, operator-centric and query-centric",
        compute=schedules,
        plot=plot_schedules,
        checks=tuple(_printed("queries", paradigm) for paradigm in PARADIGMS),
    ),
    _panel("a", "sharing"),
    _panel("b", "skewed sharing"),
    _panel("c", "priorities"),
)
