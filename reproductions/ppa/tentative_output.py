"""`ppa`, figures 12 and 13: what the two metrics say of a plan, and what its tentative output is worth.

Accuracy is the share of the exact results that came out tentatively, of all windows that lie whole in the outage: from
the moment from which only the copies were left, until a partition without a copy was back. A window of which nothing
came out counts, and what came out later does not: it is not the plan's doing. A run counts if the copies of its plan
ran when the hosts were killed, if it is known when each that was promoted took over, if nothing else was up before the
hosts were, and if all input was read in the end.

Both metrics are under the rates by which the plans were made. Those that a run measured before the loss are beside
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from models.fidelity import score, worst_case
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.ppa.tentative_checks import METRIC_CHECKS, PLANNER_CHECKS
from reproductions.ppa.tentative_experiments import HEAL_AFTER_S, by_metric, by_planner, experiment_of
from reproductions.ppa.tentative_plans import BY_METRIC, BY_PLANNER, Planned, half_fed_joins
from reproductions.ppa.tentative_queries import Query, topology_of_query
from results.views.style import BLUE, GREEN, ORANGE, WIDTH_IN

SEEN_NS = 3 * 10**9  # before a kill: a copy that runs is reported once a second
LATE_NS = 2 * 10**9  # after its window's end at most, a result comes out that is out at all
LOOKS = {"accuracy": (BLUE, "o"), "output_fidelity": (GREEN, "s"), "internal_completeness": (ORANGE, "^")}
WINDOW = ["window_start_ns", "window_end_ns"]


def facts(cell: Cell) -> Row:
    """What is known of an experiment, whether it has been run or not: also what both metrics say of its plan."""
    experiment = cell.experiment
    (query, copies), copied = _budgets()[experiment.name], experiment.engine.copied
    topology = topology_of_query(query)
    mask = topology.mask(copied)
    quality = score(topology, worst_case(mask))
    return {
        "experiment": experiment.name,
        "query": query.value,
        "copies": copies,
        "copies_made": len(copied),
        "copied": " ".join(copied),
        "output_fidelity": quality.output_fidelity,
        "internal_completeness": quality.internal_completeness,
        "half_fed_joins": half_fed_joins(topology, mask),
    } | cell.origin


def _budgets() -> dict[str, tuple[Query, int]]:
    """By experiment the query, and how many partitions may have a copy."""
    return {experiment_of(each).name: (each.query, each.copies) for each in (*BY_METRIC, *BY_PLANNER)}


def accuracies(cell: Cell) -> Iterator[Row]:
    """The accuracy of the run, with the number of windows that it is from, and of those that were `silent`.

    `fidelity_in_run` is the plan's output fidelity under the rates up to the loss, if anything tentative came out.
    Nothing of a run in which other partitions were absent than the plan leaves out, or whose exact results lack input:
    it says nothing of the plan.
    """
    if not (_copies_ran(cell) and _others_stayed_away(cell) and _caught_up(cell)):
        return
    if _took_over_ns(cell).isna().any():
        return
    rows = _whole_windows(cell)
    if not len(rows) or not rows["exact"].sum():
        return
    told = rows["output_fidelity"][rows["throughout"].eq(True)].dropna()
    yield {
        "accuracy": float(rows["both"].sum() / rows["exact"].sum()),
        "windows": len(rows),
        "silent": int(rows["first_ns"].isna().sum()),
        "fidelity_in_run": float(told.median()) if len(told) else None,
    }


def _whole_windows(cell: Cell) -> pd.DataFrame:
    """Every window with exact results that lies in the outage, with what came out of it tentatively, if anything."""
    begin_ns, end_ns = _outage(cell)
    windows, tentative = cell.table("quality"), cell.table("tentative")
    windows = windows.loc[windows["exact"] > 0, [*WINDOW, "exact"]]
    inside = (windows["window_start_ns"] >= begin_ns) & (windows["window_end_ns"] <= end_ns - LATE_NS)
    in_time = tentative[tentative["first_ns"] < end_ns].drop(columns="exact")
    return windows[inside].merge(in_time, on=WINDOW, how="left")


def _outage(cell: Cell) -> tuple[float, float]:
    """From when to when nothing but the copies was there [ns]."""
    others = _others(cell)
    back = others["ready_ns"].dropna()
    return pd.concat([_took_over_ns(cell), others["notice_ns"]]).max(), back.min() if len(back) else math.inf


def _took_over_ns(cell: Cell) -> pd.Series:
    """By promoted partition when it was ready first [ns]; nan if it never was.

    If a loss is noticed while its promotion is under way, it may be ready with a later recovery only.
    """
    found = cell.table("partition_recoveries")
    promoted = found[found["how"] == "promoted"].groupby("partition")["epoch"].max()
    since = found[found["epoch"] >= found["partition"].map(promoted)]
    return since.groupby("partition")["ready_ns"].min()


def _copies_ran(cell: Cell) -> bool:
    """Whether each copy of the plan was reported shortly before the first host was killed."""
    reports, losses = cell.table("copies"), cell.table("recoveries")
    if reports.empty or losses.empty:
        return False
    before_ns = losses["death_ns"].min() - reports["at_ns"]
    running = set(reports.loc[before_ns.between(0, SEEN_NS), "partition"])
    return running.issuperset(cell.experiment.engine.copied)


def _others_stayed_away(cell: Cell) -> bool:
    """Whether no partition without a copy was brought back before the hosts were; some may not be back at all."""
    others = _others(cell)
    late = others["ready_ns"] - others["death_ns"] >= HEAL_AFTER_S * 10**9
    return len(others) > 0 and bool((others["ready_ns"].isna() | late).all())


def _caught_up(cell: Cell) -> bool:
    """Whether lag was back to normal in the end; otherwise the lost partitions may have left input unread.

    The exact results are of the input that was read. Without that of lost partitions, the copies would have all of it.
    """
    return bool(cell.table("recoveries")["normal_ns"].notna().all())


def _others(cell: Cell) -> pd.DataFrame:
    """The recoveries of the partitions that the plan leaves out."""
    found = cell.table("partition_recoveries")
    return found[found["how"] == "restored"]


def _by_cell(cells: Sequence[Planned], table: pd.DataFrame) -> pd.DataFrame:
    """A row for each cell of a figure and each run of its experiment: cells with the same plan have the same run."""
    planned = [{"experiment": experiment_of(each).name, "planner": each.planner.value} for each in cells]
    return pd.DataFrame(planned).merge(table, on="experiment")


def _plot(table: pd.DataFrame) -> Figure:
    """A panel for each query and planner, in two rows: by number of copies the accuracy and what both metrics say."""
    panels = list(table.groupby(["query", "planner"]))
    figure = Figure(figsize=(WIDTH_IN, 6.5), layout="constrained")
    grid = figure.subplots(2, len(panels) // 2, sharey=True).ravel()
    for axes, ((query, planner), rows) in zip(grid, panels, strict=True):
        for place, (name, (color, marker)) in enumerate(LOOKS.items()):  # side by side, since they may be alike
            shift = (place - 1) / 3
            axes.plot(rows["copies"] + shift, rows[name].astype(float), marker, color=color, ls="none", label=name)
        axes.set(
            title=f"{query}\n{planner}",
            xlabel="copies",
            ylim=(-0.03, 1.03),
            xlim=(4, 14),
            xticks=sorted(rows["copies"].unique()),
        )
        axes.title.set_fontsize(8)
    figure.supylabel("share of the output")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, [each.replace("_", " ") for each in labels], loc="outside upper center", ncols=3, fontsize=8)
    return figure


REPRODUCTIONS = (
    measured(
        "ppa/fig-12",
        "output fidelity, internal completeness and accuracy of tentative output by copies",
        needs=by_metric,
        of_cell=accuracies,
        plot=_plot,
        checks=METRIC_CHECKS,
        finish=partial(_by_cell, BY_METRIC),
        about=facts,
    ),
    measured(
        "ppa/fig-13",
        "output fidelity and accuracy of tentative output by planner and copies",
        needs=by_planner,
        of_cell=accuracies,
        plot=_plot,
        checks=PLANNER_CHECKS,
        finish=partial(_by_cell, BY_PLANNER),
        about=facts,
    ),
)
