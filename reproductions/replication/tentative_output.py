"""`ppa`, figures 12 and 13: what the two metrics say of a plan, and what its tentative output is worth.

Accuracy is that of all windows together in which the same partitions were absent from beginning to end, and of which
something came out. It is 0 of a run that put out nothing tentative before the first lost partition was back: what
comes later is not the plan's doing. A run counts if the copies of its plan ran when the hosts were killed, and if
nothing else was up before the hosts were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from experiments.recovery_modes import ReplicationPlanner
from experiments.spec import Experiment
from models.fidelity import score, worst_case
from models.replication.planners import PLANNERS
from models.topology import Topology
from reproductions.checkmate.measuring import Row, measured
from reproductions.measured import Cell
from reproductions.plants import put_in_rows, scaled_rows
from reproductions.replication.tentative_experiments import (
    HEAL_AFTER_S,
    SINGLE_TASKS,
    WHOLE_TREES,
    Query,
    by_metric,
    by_planner,
    copies_of,
    query_of,
)
from reproductions.reproduction import ReproductionCheck, holds
from results.checks.rules import NotEnough, between
from results.views.style import BLUE, GREEN, ORANGE, WIDTH_IN

CLOSE = 0.1  # apart at most, of what predicts the other
NEARLY = 0.9  # of the optimum's
SEEN_NS = 3 * 10**9  # before a kill: a copy that runs is reported once a second
LOOKS = {"accuracy": (BLUE, "o"), "output_fidelity": (GREEN, "s"), "internal_completeness": (ORANGE, "^")}


def facts(cell: Cell) -> Row:
    """What is known of a cell, whether it has been run or not: also what both metrics say of its plan."""
    experiment = cell.experiment
    topology, replicated = _planned(experiment)
    quality = score(topology, worst_case(replicated))
    return {
        "query": query_of(experiment).value,
        "planner": experiment.engine.replication_planner_run.value,
        "copies": copies_of(experiment),
        "output_fidelity": quality.output_fidelity,
        "internal_completeness": quality.internal_completeness,
        "replicate": experiment.seed,
        "run_id": cell.run.run_id if cell.run else None,
        "simulated": False,
    }


def accuracies(cell: Cell) -> Iterator[Row]:
    """The accuracy of the run, with the number of windows that it is from.

    Nothing of a run in which other partitions were absent than the plan leaves out: it says nothing of the plan.
    """
    if not (_copies_ran(cell) and _others_stayed_away(cell)):
        return
    rows = cell.table("tentative")
    rows = rows[rows["first_ns"] < _others(cell)["ready_ns"].fillna(np.inf).min()]
    if rows.empty:
        yield {"accuracy": 0.0, "windows": 0}
        return
    steady = rows[rows["throughout"] & (rows["exact"] > 0)]
    if len(steady):
        yield {"accuracy": float(steady["both"].sum() / steady["exact"].sum()), "windows": len(steady)}


def _planned(experiment: Experiment) -> tuple[Topology, npt.NDArray[np.bool_]]:
    """The dataflow under even rates, and which of its partitions have a copy by the plan."""
    from testbed.experiment_layout import layout_of
    from testbed.topology import even_rates, topology_of

    layout = layout_of(experiment)
    topology = topology_of(layout, even_rates(layout))
    planner = PLANNERS[experiment.engine.replication_planner_run.value]
    return topology, planner(topology, copies_of(experiment)).replicated


def _copies_ran(cell: Cell) -> bool:
    """Whether each copy of the plan was reported shortly before the first host was killed."""
    reports, losses = cell.table("copies"), cell.table("recoveries")
    if reports.empty or losses.empty:
        return False
    before_ns = losses["death_ns"].min() - reports["at_ns"]
    running = set(reports.loc[before_ns.between(0, SEEN_NS), "partition"])
    topology, replicated = _planned(cell.experiment)
    return running.issuperset(topology.tasks[at] for at in np.flatnonzero(replicated))


def _others_stayed_away(cell: Cell) -> bool:
    """Whether no partition without a copy was brought back before the hosts were; some may not be back at all."""
    others = _others(cell)
    late = others["ready_ns"] - others["death_ns"] >= HEAL_AFTER_S * 10**9
    return len(others) > 0 and bool((others["ready_ns"].isna() | late).all())


def _others(cell: Cell) -> pd.DataFrame:
    """The recoveries of the partitions that the plan leaves out."""
    found = cell.table("partition_recoveries")
    return found[found["how"] == "restored"]


def _medians(table: pd.DataFrame, planner: ReplicationPlanner, *queries: Query) -> pd.DataFrame:
    """By query and number of copies, the medians over the replicates; raises `NotEnough` if some are missing."""
    rows = table[(table["planner"] == planner.value) & table["query"].isin([query.value for query in queries])]
    if rows.empty or "accuracy" not in rows or rows["accuracy"].isna().any():
        raise NotEnough(f"the accuracy under planner {planner.value} is not known of every query and number of copies")
    return rows.groupby(["query", "copies"])[list(LOOKS)].median()


def _apart(metric: str, planner: ReplicationPlanner, *queries: Query) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """By how much a metric says more than the accuracy is, for each query and number of copies."""

    def compare(table: pd.DataFrame) -> pd.DataFrame:
        found = _medians(table, planner, *queries)
        return pd.DataFrame({"apart": found[metric] - found["accuracy"]})

    return compare


def _most_apart(table: pd.DataFrame) -> pd.DataFrame:
    found = _apart("internal_completeness", SINGLE_TASKS, Query.INCIDENTS)(table)
    return found.nlargest(1, "apart")


def _relative(column: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """What the structure-aware plan reaches of what the plan by dynamic programming does."""

    def compare(table: pd.DataFrame) -> pd.DataFrame:
        dp, ours = (
            _medians(table, each, Query.BOUND, Query.INCIDENTS) for each in (ReplicationPlanner.DP, WHOLE_TREES)
        )
        return pd.DataFrame({"ratio": (ours[column] / dp[column])[dp[column] > 0]})

    return compare


def _ahead(column: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """By how much the structure-aware plan is better than the greedy one."""

    def compare(table: pd.DataFrame) -> pd.DataFrame:
        planners = WHOLE_TREES, SINGLE_TASKS
        ours, greedy = (_medians(table, each, Query.BOUND, Query.INCIDENTS)[column] for each in planners)
        return pd.DataFrame({"ahead": ours - greedy})

    return compare


def _told(frame: pd.DataFrame) -> str:
    (name,) = frame
    return f"{name} {frame[name].min():.2f} to {frame[name].max():.2f}"


def _plot(table: pd.DataFrame) -> Figure:
    """A panel for each query and planner: by number of copies the accuracy and what both metrics say."""
    panels = list(table.groupby(["query", "planner"]))
    figure = Figure(figsize=(WIDTH_IN, 4.0), layout="constrained")
    for axes, ((query, planner), rows) in zip(figure.subplots(1, len(panels), sharey=True)[:], panels, strict=True):
        for place, (name, (color, marker)) in enumerate(LOOKS.items()):  # side by side, since they may be alike
            axes.plot(rows["copies"] + place - 1, rows[name].astype(float), marker, color=color, ls="none", label=name)
        axes.set(
            title=f"{query}\n{planner}",
            xlabel="copies",
            ylim=(-0.03, 1.03),
            xlim=(3, 15),
            xticks=sorted(rows["copies"].unique()),
        )
        axes.title.set_fontsize(8)
    figure.axes[0].set_ylabel("share of the output")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, [each.replace("_", " ") for each in labels], loc="outside upper center", ncols=3, fontsize=8)
    return figure


BY_METRIC: tuple[ReproductionCheck, ...] = (
    holds(
        "fidelity.tracks_accuracy",
        _apart("output_fidelity", WHOLE_TREES, Query.BOUND, Query.INCIDENTS),
        [between("apart", -CLOSE, CLOSE)],
        _told,
        f"output fidelity and accuracy are at most {CLOSE:g} apart, for both queries",
        scaled_rows("accuracy", 0.5, planner=WHOLE_TREES.value, query=Query.INCIDENTS.value),
    ),
    holds(
        "completeness.tracks_without_joins",
        _apart("internal_completeness", WHOLE_TREES, Query.BOUND),
        [between("apart", -CLOSE, CLOSE)],
        _told,
        f"internal completeness and accuracy are at most {CLOSE:g} apart for Q1",
        put_in_rows("accuracy", 0.05, query=Query.BOUND.value),
    ),
    holds(
        "completeness.misleads_with_joins",
        _most_apart,
        [between("apart", CLOSE, None)],
        _told,
        f"of a plan of single tasks for Q2, internal completeness promises at least {CLOSE:g} too much",
        put_in_rows("accuracy", 0.9, planner=SINGLE_TASKS.value),
    ),
)
BY_PLANNER: tuple[ReproductionCheck, ...] = tuple(
    check
    for column in ("output_fidelity", "accuracy")
    for check in (
        holds(
            f"structure_aware.{column}_close_to_dp",
            _relative(column),
            [between("ratio", NEARLY, None)],
            _told,
            f"{column.replace('_', ' ')} of structure-aware plans is at least {NEARLY:g} of dp's",
            scaled_rows(column, 0.5, planner=WHOLE_TREES.value),
        ),
        holds(
            f"greedy.{column}_worst",
            _ahead(column),
            [between("ahead", 0.0, None)],
            _told,
            f"{column.replace('_', ' ')} of greedy plans is never above that of structure-aware ones",
            put_in_rows(column, 1.0, planner=SINGLE_TASKS.value),
        ),
    )
)
REPRODUCTIONS = (
    measured(
        "ppa/fig-12",
        "output fidelity, internal completeness and accuracy of tentative output by copies",
        needs=by_metric,
        of_cell=accuracies,
        plot=_plot,
        checks=BY_METRIC,
        about=facts,
    ),
    measured(
        "ppa/fig-13",
        "output fidelity and accuracy of tentative output by planner and copies",
        needs=by_planner,
        of_cell=accuracies,
        plot=_plot,
        checks=BY_PLANNER,
        about=facts,
    ),
)
