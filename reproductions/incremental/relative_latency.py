"""`incremental`, figures 13 to 15: relative latency of queries after some hosts have died, by place and number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.spec import Experiment
from reproductions.claims import Ratio, at_least, paired_ratio
from reproductions.incremental import availability
from reproductions.incremental.experiments import (
    MANY,
    SOME,
    Place,
    Waits,
    few_lost,
    few_lost_incremental,
    hosts_lost,
    more_lost,
    place_of,
)
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import InRows, scaled_rows
from reproductions.reproduction import Reproduction, ReproductionCheck, holds
from results.checks.rules import NotEnough, between
from results.summary.availability import NORMAL, NORMAL_S
from results.views.style import BLUE, GREEN, GREY, INK, ORANGE, WIDTH_IN, legend_above

LOSS = ["hosts_lost", "place", "replicate"]
END_S = 20.0  # so long is the end of a run
RESULT_S = 2.0  # within so long a result usually comes: there is one every second, .7 s after its input was due
COLORS = {(Waits.ROOM.value, True): BLUE, (Waits.ALL.value, True): ORANGE, (Waits.ROOM.value, False): GREEN}


def facts(cell: Cell) -> Row:
    """What is known of a cell, whether it has been run or not."""
    about = {"hosts_lost": hosts_lost(cell.experiment), "place": place_of(cell.experiment).value}
    return availability.facts(cell) | about


def slides(cell: Cell) -> Iterator[Row]:
    """Each slide of each query that was due from the first loss on, with its relative latency and whether it was lost.

    A query without any in the last `END_S` of the run has one row more, which has no moment and is infinitely late.
    Moments are in seconds since the first loss: when a slide was due and when it arrived, when the last query was lost
    (`lost_s`), and when the first recovery was planned (`planned_s`; null: none was).
    """
    lost, found = cell.table("query_recoveries"), cell.table("query_latencies")
    if lost.empty or found.empty:
        return
    first_ns = lost["death_ns"].min()
    gone = {query.rpartition(".")[0] for query in lost["query"]}
    since, planned_ns = found[found["due_ns"] >= first_ns], lost["planned_ns"].min()
    run: Row = {
        "lost_s": (lost["death_ns"].max() - first_ns) / 1e9,
        "planned_s": None if pd.isna(planned_ns) else (planned_ns - first_ns) / 1e9,
    }
    last_ns = since.groupby("query")["due_ns"].max()
    to_the_end = last_ns[last_ns >= found["due_ns"].max() - round(END_S * 1e9)].index
    for query in sorted(gone.union(found["query"]).difference(to_the_end)):
        silent = {"due_s": None, "arrived_s": None, "relative_latency": np.inf}
        yield run | {"query": query, "lost": query in gone} | silent
    for row in since.itertuples():
        about = run | {"query": row.query, "lost": row.query in gone, "relative_latency": row.relative_latency}
        yield about | {"due_s": (row.due_ns - first_ns) / 1e9, "arrived_s": (row.arrived_ns - first_ns) / 1e9}


def _of_runs(table: pd.DataFrame, lost: bool) -> pd.DataFrame:
    """The slides of the queries that were lost, or of the others; raises `NotEnough` if a run lacks some."""
    lacking = table[table["relative_latency"].isna()] if "relative_latency" in table else table
    if len(lacking):
        runs = lacking[["waits", *LOSS]].drop_duplicates().itertuples()
        told = ", ".join(f"{run.waits} {run.hosts_lost} hosts {run.place} #{run.replicate}" for run in runs)
        raise NotEnough(f"relative latency is not known of {told}")
    rows = table[table["lost"].astype(bool) == lost]
    if rows.empty:
        raise NotEnough("all queries were lost" if not lost else "no query was lost")
    return rows


def _below_blocking(table: pd.DataFrame) -> pd.DataFrame:
    """By loss, the mean relative latency of lost queries under Incremental over that under Blocking.

    Raises `NotEnough` if one of two runs is missing, or if a query has no results in the end under Blocking: how late
    it is, is not known, and any mean would be below.
    """
    means = _of_runs(table, True).groupby([*LOSS, "waits"])["relative_latency"].mean()
    room, blocking = Waits.ROOM.value, Waits.ALL.value
    found = means.unstack("waits").reindex(columns=[room, blocking])
    if found.isna().any(axis=None):
        raise NotEnough("one of two runs is missing, or no query was lost in it")
    if np.isinf(found[blocking]).any():
        raise NotEnough(f"a lost query has no results in the end under {blocking}")
    return pd.DataFrame({"ratio": found[room] / found[blocking]})


def _at_the_end(lost: bool) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """By run, the highest median that a query has of the relative latency of the slides that were due last.

    A query without such slides is infinitely late; a run without any is not known to have come so far.
    """

    def worst(table: pd.DataFrame) -> pd.DataFrame:
        rows, run = _of_runs(table, lost), ["waits", *LOSS]
        end_s = table["due_s"].max() - END_S
        followed = table[table["due_s"] >= end_s].groupby(run).size().index
        if not rows.groupby(run).size().index.isin(followed).all():
            raise NotEnough(f"a run has no results of the last {END_S:g} s")
        medians = rows[rows["due_s"] >= end_s].groupby([*run, "query"])["relative_latency"].median()
        of_all = medians.reindex(rows.groupby([*run, "query"]).size().index, fill_value=np.inf)
        return of_all.groupby(run).max().to_frame("worst")

    return worst


def _meanwhile(place: Place, table: pd.DataFrame) -> pd.DataFrame:
    """The slides that were due after the last loss, long enough before the first recovery for results to come.

    Of the runs whose hosts died in this place. Raises `NotEnough` if one of them has no such time.
    """
    rows = table[table["place"] == place.value]
    until_s = rows["planned_s"].astype(float) - RESULT_S
    if rows.empty or not (until_s > rows["lost_s"]).all():
        raise NotEnough(f"{place.value}: recovery is not known to have begun later than {RESULT_S:g} s after the loss")
    return rows[(rows["due_s"] >= rows["lost_s"]) & (rows["due_s"] < until_s)]


def _others_meanwhile(table: pd.DataFrame) -> pd.DataFrame:
    """By run, query that was not lost, and `NORMAL_S` before the recovery, the mean relative latency."""
    rows = _of_runs(_meanwhile(Place.DOWNSTREAM, table), False)
    return rows.groupby([*LOSS, "query", rows["due_s"] // NORMAL_S])["relative_latency"].mean().to_frame("mean")


def _results_meanwhile(table: pd.DataFrame) -> pd.DataFrame:
    """By run, how many slides had results before the recovery."""
    rows = _meanwhile(Place.UPSTREAM, table)
    return rows.assign(results=rows["arrived_s"] < rows["planned_s"]).groupby(LOSS)[["results"]].sum()


def _latest(table: pd.DataFrame) -> list[Ratio]:
    """The highest relative latency of lost queries after many hosts were lost over that after some; pairs by replicate,
    since each replicate draws hosts and delays."""
    rows = _of_runs(table[table["waits"] == Waits.ROOM.value], True)
    highest = rows.groupby(["replicate", "hosts_lost"], as_index=False)["relative_latency"].max()
    if np.isinf(highest["relative_latency"]).any():
        raise NotEnough("a lost query has no results in the end")
    return [paired_ratio(f"{MANY} hosts by {SOME}", highest, "relative_latency", "hosts_lost", MANY, SOME)]


def _ratios(found: pd.DataFrame) -> str:
    return f"{found['ratio'].min():.2f} to {found['ratio'].max():.2f} times"


BELOW = holds(
    "incremental.below_blocking",
    _below_blocking,
    [between("ratio", None, availability.SOONER)],
    _ratios,
    f"mean relative latency of the lost queries under Incremental is at most {availability.SOONER:g} times that under"
    " Blocking, for every number and place of hosts",
    scaled_rows("relative_latency", 50.0, waits=Waits.ROOM.value),
)


def _back_to_normal(name: str, lost: bool, who: str) -> ReproductionCheck:
    return holds(
        name,
        _at_the_end(lost),
        [between("worst", None, NORMAL)],
        lambda found: f"{found['worst'].min():.2f} to {found['worst'].max():.2f} of the run's latest query",
        f"median relative latency of each of the {who} is below {NORMAL:g} in the last {END_S:g} s",
        InRows(f"relative_latency x 2 of one of the {who}", partial(_one_query_late, lost)),
    )


def _one_query_late(lost: bool, table: pd.DataFrame) -> pd.DataFrame:
    """The table with one query twice as late as it was, in all runs."""
    one = (table["lost"] == lost) & (table["query"] == table.loc[table["lost"] == lost, "query"].min())
    return table.assign(relative_latency=table["relative_latency"].where(~one, 2 * table["relative_latency"]))


def _late_before_recovery(table: pd.DataFrame) -> pd.DataFrame:
    before = table["due_s"] < table["planned_s"]
    return table.assign(relative_latency=table["relative_latency"].where(~before, 2 * table["relative_latency"]))


def _plot(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 4.2), layout="constrained")
    losses = table[LOSS[:2]].drop_duplicates().sort_values(LOSS[:2]).itertuples(index=False)
    shown = [(loss.hosts_lost, loss.place) for loss in losses]
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    known = table.dropna(subset=["relative_latency"]) if "relative_latency" in table else table.head(0)
    for panel, (number, place) in zip(panels, shown, strict=True):
        rows = known[(known["hosts_lost"] == number) & (known["place"] == place)]
        for (waits, lost), found in rows.groupby(["waits", "lost"]):
            means = found.groupby(found["due_s"].round())["relative_latency"].mean()
            label = f"{waits}, {'lost' if lost else 'other'} queries"
            panel.plot(means.index, means, color=COLORS.get((str(waits), bool(lost)), GREY), label=label)
        panel.axhline(NORMAL, color=INK, ls=":", lw=0.8)
        panel.set(title=f"{number} hosts lost, {place}", xlabel="input due [s since the first loss]", yscale="log")
    panels[0].set_ylabel("relative latency")
    legend_above(figure, fontsize=8)
    return figure


def _figure(
    id: str, what: str, needs: Callable[[int], Sequence[Experiment]], checks: tuple[ReproductionCheck, ...]
) -> Reproduction:
    return measured(id, what, needs, of_cell=slides, plot=_plot, checks=checks, about=facts)


REPRODUCTIONS = (
    _figure(
        "incremental/fig-13",
        "relative latency of lost queries after 2 hosts are lost, Incremental and Blocking",
        few_lost,
        (BELOW, _back_to_normal("lost.back_to_normal", True, "lost queries")),
    ),
    _figure(
        "incremental/fig-14",
        "relative latency of lost and of other queries after 2 hosts are lost, Incremental",
        few_lost_incremental,
        (
            _back_to_normal("others.back_to_normal", False, "queries that were not lost"),
            holds(
                "others.undisturbed_until_recovery",
                _others_meanwhile,
                [between("mean", None, NORMAL)],
                lambda found: f"at most {found['mean'].max():.2f}",
                "before the recovery of lost sinks begins, relative latency of queries that were not lost stays below"
                f" {NORMAL:g}, on average over {NORMAL_S:g} s",
                InRows("relative_latency x 2 before the recovery", _late_before_recovery),
            ),
            holds(
                "upstream.silent_until_recovery",
                _results_meanwhile,
                [between("results", None, 0)],
                lambda found: f"{found['results'].sum()} slides have results",
                "if hosts upstream are lost, no query has results before the recovery begins",
                scaled_rows("arrived_s", 0.2, place=Place.UPSTREAM.value),
            ),
        ),
    ),
    _figure(
        "incremental/fig-15",
        "relative latency of lost queries after 4 and 8 hosts are lost",
        more_lost,
        (
            BELOW,
            _back_to_normal("lost.back_to_normal", True, "lost queries"),
            at_least(
                "more.takes_longer",
                _latest,
                1.0,
                f"under Incremental the latest result after {MANY} hosts were lost is at least as late as after {SOME}",
                scaled_rows("relative_latency", 0.01, hosts_lost=MANY),
            ),
        ),
    ),
)
