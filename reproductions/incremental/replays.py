"""`incremental`, figures 10 and 11: what source replay costs after several kills, and a cluster left too small."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.wording import counted
from reproductions.claims import Ratio, at_least, paired_ratio
from reproductions.incremental.experiments import (
    KILLS,
    SMALL_AT_S,
    SMALL_HOSTS,
    SMALL_LOST,
    hosts_lost,
    replayed,
    too_small,
)
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import InRows, put_in_rows, scaled_rows
from reproductions.reproduction import holds
from results.checks.rules import NotEnough, between
from results.views.style import BLUE, GREEN, ORANGE, new_figure

COLORS = (GREEN, BLUE, ORANGE)
SETTLED_S = 20.0  # after the loss, lag has its new course
FEWEST_SECONDS = 20  # of that course: half of what a whole run has
GROWS, HOLDS = 0.05, 0.02  # growth of lag over the load


def facts(cell: Cell) -> Row:
    """What is known of a cell, whether it has been run or not."""
    return {"kills": hosts_lost(cell.experiment)} | cell.origin


def small_facts(cell: Cell) -> Row:
    """The same for figure 11; `kills` is None for the search on as many hosts as the loss leaves."""
    return facts(cell) | ({"kills": None} if _is_of_left_hosts(cell) else {})


def _is_of_left_hosts(cell: Cell) -> bool:
    return cell.experiment.cluster.workers < SMALL_HOSTS


def latencies(cell: Cell) -> Iterator[Row]:
    """Each slide of each query: when it was due [s of the window], and its end-to-end latency [s]; and how many replays
    of the run were struck by the next kill, `replays_struck`."""
    runs, struck = cell.table("runs"), _replays_struck(cell.table("partition_recoveries"))
    for row in cell.table("query_latencies").itertuples():
        due_s = (row.due_ns - int(runs["window_start_ns"].iat[0])) / 1e9
        yield {"query": row.query, "due_s": due_s, "latency_s": row.latency_s, "replays_struck": struck}


def _replays_struck(recoveries: pd.DataFrame) -> int:
    """How many replays were under way when the next kill was noticed: begun, and some partition had not arrived."""
    moments = recoveries[["fault", "notice_ns", "ready_ns", "reached_ns"]].astype("Int64")
    moments["reached_ns"] = moments["reached_ns"].fillna(np.iinfo(np.int64).max)
    faults = moments.groupby("fault").agg({"notice_ns": "min", "ready_ns": "min", "reached_ns": "max"})
    next_ns = faults["notice_ns"].shift(-1)
    return int(((faults["ready_ns"] < next_ns) & (faults["reached_ns"] > next_ns)).sum())


def _with_each_kill(table: pd.DataFrame) -> list[Ratio]:
    """The highest latency after each number of kills, over that after one kill less; pairs by replicate.

    Raises `NotEnough` if a kill struck while nothing was replayed: what grows then does so for another reason.
    """
    if not {"latency_s", "replays_struck"} <= set(table) or table["latency_s"].isna().any():
        raise NotEnough("for at least one number of kills, latency is missing")
    spared = table[table["replays_struck"] < table["kills"] - 1]
    if len(spared):
        struck, kills = spared[["replays_struck", "kills"]].iloc[0]
        raise NotEnough(f"only {struck} of {kills - 1} kills after the first struck during a replay")
    highest = table.groupby(["replicate", "kills"], as_index=False)["latency_s"].max()
    pairs = {kills: f"latency after {kills} kills, divided by that after {kills - 1}:" for kills in KILLS[1:]}
    return [paired_ratio(what, highest, "latency_s", "kills", kills, kills - 1) for kills, what in pairs.items()]


def lags(cell: Cell) -> Iterator[Row]:
    """Second by second, lag over the load: how many seconds of input wait; and the load [records/s].

    Of the search on the hosts that are left, `not_sustained`: the lowest rate that was too much for them [records/s].
    """
    runs = cell.table("runs")
    if _is_of_left_hosts(cell):
        yield from ({"not_sustained": float(rate)} for rate in runs["unsustainable_rate"].dropna())
        return
    loads = runs["load_rate"].dropna()
    for row in cell.table("throughput").itertuples():
        if len(loads):
            load = float(loads.iat[0])
            yield {"second": int(row.second), "waiting_s": row.lag_records / load, "load": load}


def _growth(lost: int, table: pd.DataFrame) -> pd.DataFrame:
    """By replicate, seconds of input by which lag grows in a second, from when it has its new course.

    Raises `NotEnough` if a replicate has too few seconds from then on: a line through them says nothing.
    """
    rows = table[table["kills"] == lost]
    if "waiting_s" not in rows or rows.empty or rows["waiting_s"].isna().any():
        raise NotEnough(f"lag is missing in the runs with {lost} hosts lost")
    found = {}
    for replicate, run in rows.groupby("replicate"):
        settled = run[run["second"] >= SMALL_AT_S + SETTLED_S]
        if len(settled) < FEWEST_SECONDS:
            told = f"lag is known of only {len(settled)} seconds from second {SMALL_AT_S + SETTLED_S:g} on"
            raise NotEnough(f"{told}, with {lost} hosts lost #{replicate}; at least {FEWEST_SECONDS} are needed")
        found[replicate] = np.polyfit(settled["second"], settled["waiting_s"].astype(float), 1)[0]
    return pd.DataFrame({"growth": found})


def _only_if_too_small(table: pd.DataFrame) -> None:
    """Raises `NotEnough` unless one host alone has not sustained a rate that is below the load by `GROWS` of it.

    Where one host keeps up, lag that does not grow says nothing of clusters that are too small.
    """
    if not {"load", "not_sustained"} <= set(table):
        raise NotEnough("it is not known what one host sustains: there is no finished search on one host")
    alone = table[table["kills"].isna()].groupby("replicate")["not_sustained"].first()
    loads = table[table["kills"] == SMALL_LOST[-1]].groupby("replicate")["load"].first()
    shares = alone / loads
    if shares.isna().any():
        raise NotEnough("it is not known what one host sustains: a search on one host is missing")
    if (shares > 1 - GROWS).any():
        raise NotEnough(
            "the cluster that is left is not known to be too small:"
            f" the lowest rate that one host did not sustain is {shares.max():.2f} of the load"
        )


def _growths(found: pd.DataFrame) -> str:
    return f"{found['growth'].min():+.3f} to {found['growth'].max():+.3f} s a second"


def _plot_latencies(table: pd.DataFrame) -> Figure:
    figure, axes = new_figure(3.6)
    known = table.dropna(subset=["latency_s"]) if "latency_s" in table else table.head(0)
    for color, (kills, rows) in zip(COLORS, known.groupby("kills"), strict=False):
        means = rows.groupby(rows["due_s"].round())["latency_s"].mean()
        axes.plot(means.index, means, color=color, label=counted(int(str(kills)), "kill"))
    axes.set(xlabel="input due [s of the window]", ylabel="end-to-end latency [s]", ylim=(0, None))
    axes.legend()
    return figure


def _plot_lags(table: pd.DataFrame) -> Figure:
    figure, axes = new_figure(3.6)
    known = table.dropna(subset=["waiting_s"]) if "waiting_s" in table else table.head(0)
    known = known.astype({"kills": int})
    for color, (lost, rows) in zip(COLORS, known.groupby("kills"), strict=False):
        means = rows.groupby("second")["waiting_s"].mean()
        axes.plot(means.index, means, color=color, label=f"{lost} of 2 hosts lost")
    axes.set(xlabel="time in the window [s]", ylabel="input that waits [s of load]", ylim=(0, None))
    axes.legend()
    return figure


def _growing(table: pd.DataFrame) -> pd.DataFrame:
    grown = table["waiting_s"] + GROWS * table["second"]
    return table.assign(waiting_s=table["waiting_s"].mask(table["kills"] == SMALL_LOST[0], grown))


def _grows(table: pd.DataFrame) -> pd.DataFrame:
    _only_if_too_small(table)
    return _growth(SMALL_LOST[-1], table)


def _holds(table: pd.DataFrame) -> pd.DataFrame:
    return _growth(SMALL_LOST[0], table)


REPRODUCTIONS = (
    measured(
        "incremental/fig-10",
        "latency under source replay, one to three hosts killed one after the other",
        needs=replayed,
        of_cell=latencies,
        plot=_plot_latencies,
        checks=(
            at_least(
                "replay.later_with_each_kill",
                _with_each_kill,
                1.0,
                "the highest latency grows with each kill that strikes during the replay after the previous kill",
                scaled_rows("latency_s", 0.5, kills=KILLS[-1]),
            ),
        ),
        about=facts,
    ),
    measured(
        "incremental/fig-11",
        "lag of Spark on a cluster that is left too small",
        needs=too_small,
        of_cell=lags,
        plot=_plot_lags,
        checks=(
            holds(
                "too_small.grows",
                _grows,
                [between("growth", GROWS, None)],
                _growths,
                f"with one of two hosts left, which is too small, lag grows by at least {GROWS:.0%} of the load",
                put_in_rows("waiting_s", 1.0, kills=SMALL_LOST[-1]),
            ),
            holds(
                "enough.bounded",
                _holds,
                [between("growth", None, HOLDS)],
                _growths,
                f"with both hosts, lag grows by at most {HOLDS:.0%} of the load",
                InRows(f"lag with both hosts grows by {GROWS:.0%} of the load", _growing),
            ),
        ),
        about=small_facts,
    ),
)
