"""`checkmate`, figures 9 to 11: latency around a kill at second 18 of 60, and how long a restart takes.

Latency is here until a result is out for good, which is when the line of checkpoints has moved past it: all protocols
show it once an interval. The restart is without Spark's part, which is the same for all protocols and stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd
from matplotlib.figure import Figure

from experiments.workloads.catalogue import NexmarkQuery
from reproductions.checkmate.by_protocol import (
    CIC,
    COOR,
    LOOKS,
    NAMES,
    UNC,
    by_query,
    complete,
    draw_by_workers,
    facts,
    protocols_ratio,
)
from reproductions.checkmate.experiments import INTERVAL_S, KILL_AT_S, PROTOCOLS, QUERIES, WINDOW_S, killed
from reproductions.checkmate.simulated import SimulatedCell, simulated, simulated_at_least
from reproductions.claims import IN_THE_MEAN, SIMILAR, Ratio, at_least
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import InRows, Plant, like_rows, scaled_rows
from reproductions.reproduction import Reproduction, ReproductionCheck, holds
from results.checks.rules import NotEnough, between
from results.summary.findings import EXECUTOR, PHASES
from results.views.style import INK, WIDTH_IN

SETTLED_S = 20.0  # the last seconds of the window, in which latency must be as before
FEWEST_BEFORE = 2  # seconds with results before the kill; results come out once an interval
RECOVERY = ("restart_s", "restore_s", "catch_up_s")  # from the notice of a failure until lag is as before
SIMPLER = tuple(query for query in QUERIES if query is not NexmarkQuery.Q3)
AS_BEFORE = 1.5  # times what it was before the kill; an outage of seconds that goes on to be felt is several times that


def latency_by_second(cell: Cell) -> Iterator[Row]:
    """Latency percentiles [s] of each second of the window in which results came out."""
    for row in cell.table("latency").itertuples():
        yield {"second": int(row.second), "p50_s": float(row.p50_s), "p99_s": float(row.p99_s)}


def recovery_times(cell: Cell) -> Iterator[Row]:
    """The phases of the recovery from the kill, Spark's part of the restart, and `own_s`, the rest of it [s]."""
    found = cell.table("recoveries")
    if len(found):
        kill = found.dropna(subset=["fault"]).head(1)  # a host can be suspected wrongly before it
        for _, row in kill[[f"{part}_s" for part in (*PHASES, EXECUTOR)]].astype(float).iterrows():
            yield row.to_dict() | {"own_s": row["restart_s"] - row[f"{EXECUTOR}_s"]}


def simulated_restart(cell: SimulatedCell) -> Iterator[Row]:
    """Until all have read what they need once their slots are there again [s]."""
    yield {"own_s": cell.loaded().restart_s}


def _around(table: pd.DataFrame, query: str, percentile: str) -> pd.DataFrame:
    """Of each run of a query, how latency was, as a multiple of that before the kill.

    `peak` is the highest after it over the highest before: the highest of many is above a median without any kill, too.
    `end` is the median of the last seconds over the median before, or how many intervals of checkpoints have passed
    since the last result, if that is more: results come out once an interval, and seconds without any have no latency.
    """
    rows = complete(by_query(table, query), "second", percentile)
    found = []
    for (protocol, replicate), run in rows.groupby(["protocol", "replicate"], sort=False):
        before, after = run[run["second"] < KILL_AT_S][percentile], run[run["second"] >= KILL_AT_S][percentile]
        settled = run[run["second"] >= WINDOW_S - SETTLED_S][percentile]
        if len(before) < FEWEST_BEFORE:
            told = f"of {query} {protocol} #{replicate} results came in {len(before)} of the seconds before the kill"
            raise NotEnough(f"{told}; at least {FEWEST_BEFORE} tell what is usual")
        usual_s = before.median()
        peak_s = after.max() if len(after) else WINDOW_S - KILL_AT_S  # what has not come out is at least so late
        end_s = settled.median() if len(settled) else SETTLED_S
        silent = (WINDOW_S - 1 - run["second"].max()) / INTERVAL_S
        end = max(end_s / usual_s, silent)
        found.append({"run": f"{protocol} #{replicate}", "peak": peak_s / before.max(), "end": end})
    return pd.DataFrame(found)


def _latency_scaled(percentile: str, since_s: float, factor: float) -> InRows:
    """Latency times a factor from a second of the window on."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        later = table["second"] >= since_s
        return table.assign(**{percentile: table[percentile].mask(later, factor * table[percentile])})

    return InRows(f"{percentile} x {factor:g} from second {since_s:g} on", change)


def _latency_checks(percentile: str) -> tuple[ReproductionCheck, ...]:
    def check(
        query: str, name: str, column: str, low: float | None, high: float | None, expected: str, plant: Plant
    ) -> ReproductionCheck:
        return holds(
            f"{query}.{name}",
            lambda table: _around(table, query, percentile),
            [between(column, low, high)],
            lambda rows: ", ".join(f"{row['run']} {row[column]:.2f}" for _, row in rows.iterrows()),
            f"{expected} before the kill, each protocol",
            plant,
        )

    return tuple(
        made
        for query in QUERIES
        for made in (
            check(
                query,
                "kill_is_felt",
                "peak",
                AS_BEFORE,
                None,
                f"the highest latency after it at least {AS_BEFORE:g} times the highest",
                _latency_scaled(percentile, KILL_AT_S, 0.3),
            ),
            check(
                query,
                "returns_to_normal",
                "end",
                None,
                AS_BEFORE,
                f"results within {AS_BEFORE:g} intervals of the end; median of the last {SETTLED_S:g} s at most"
                f" {AS_BEFORE:g} times the median",
                _latency_scaled(percentile, WINDOW_S - SETTLED_S, 2.0),
            ),
        )
    )


def _plot_latency(percentile: str) -> Callable[[pd.DataFrame], Figure]:
    def plot(table: pd.DataFrame) -> Figure:
        figure = Figure(figsize=(WIDTH_IN, 6.4), layout="constrained")
        panels = figure.subplots(2, 2, sharex=True)
        for axes, query in zip(panels.flat, QUERIES, strict=True):
            runs = by_query(table, query).groupby(["protocol", "replicate"], sort=False)
            for (protocol, replicate), run in runs:
                look = LOOKS[protocol] | {"label": protocol if replicate == 1 else None, "ms": 4}
                axes.plot(run["second"], run[percentile], **look)
            axes.axvline(KILL_AT_S, color=INK, ls="--", lw=1)
            axes.set(title=query.upper(), ylabel=f"{percentile.removesuffix('_s')} of latency [s]", ylim=(0, None))
        for axes in panels[-1]:
            axes.set(xlabel="second of the window; dashed: the kill", xlim=(0, WINDOW_S))
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=len(NAMES))
        return figure

    return plot


def _alike_before(other: str) -> ReproductionCheck:
    """The paper tells it of the queries but Q3: before the failure, the median is similar with all protocols."""

    def ratios(table: pd.DataFrame) -> list[Ratio]:
        rows = table[table["query"].isin(SIMPLER) & ~(table["second"] >= KILL_AT_S)]
        usual = complete(rows, "p50_s").groupby(["query", "protocol", "replicate"], as_index=False)["p50_s"].median()
        return [protocols_ratio(usual, "p50_s", *pair) for pair in ((COOR, other), (other, COOR))]

    return at_least(
        f"coordinated.as_late_as_{other.lower()}_before",
        ratios,
        SIMILAR,
        f"usual latency before the kill: neither of COOR and {other} has less than {SIMILAR:g} times the other's, "
        f"{IN_THE_MEAN}",
        scaled_rows("p50_s", 2.0, protocol=COOR),
    )


def restart_ratios(table: pd.DataFrame, other: str) -> Ratio:
    """How much longer another protocol takes to restart than COOR: by all queries and runs."""
    return protocols_ratio(table, "own_s", other, COOR)


def recovery_ratios(table: pd.DataFrame, other: str) -> Ratio:
    """How much longer another protocol takes than COOR until lag is as before: by all queries and runs."""
    rows = complete(table, *RECOVERY)
    return protocols_ratio(rows.assign(recovery_s=rows[[*RECOVERY]].sum(axis=1)), "recovery_s", other, COOR)


def _restarts_faster(other: str) -> ReproductionCheck:
    return at_least(_named(other), lambda table: [restart_ratios(table, other)], 1.0, _told(other), _faster(other))


def _recovers_faster(other: str) -> ReproductionCheck:
    return at_least(
        f"recovery.{_named(other)}",
        lambda table: [recovery_ratios(table, other)],
        1.0,
        f"COOR is back to its usual lag at least as fast as {other} to its own, {IN_THE_MEAN} of all queries",
        like_rows(RECOVERY, other, COOR, 0.8),
    )


def _simulated_faster(other: str) -> ReproductionCheck:
    def ratios(table: pd.DataFrame) -> list[tuple[str, float]]:
        return [restart_ratios(table, other)[:2]]

    return simulated_at_least(_named(other), ratios, 1.0, _told(other), _faster(other))


def _faster(other: str) -> Plant:
    return like_rows(("own_s",), other, COOR, 0.8)


def _named(other: str) -> str:
    return f"coordinated.not_slower_than_{other.lower()}"


def _told(other: str) -> str:
    return f"COOR restarts at least as fast as {other}, {IN_THE_MEAN} of all queries"


def _plot_restarts(table: pd.DataFrame) -> Figure:
    figure = draw_by_workers(table, "own_s")
    figure.axes[0].set(yscale="log", ylabel="restart without Spark's part [s]")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=len(NAMES))
    return figure


def _latency(id: str, percentile: str, *more_checks: ReproductionCheck) -> Reproduction:
    return measured(
        id,
        f"{percentile.removesuffix('_s')} of latency by second, around a kill at second {KILL_AT_S:g} of {WINDOW_S:g}",
        needs=killed,
        of_cell=latency_by_second,
        plot=_plot_latency(percentile),
        about=facts,
        checks=(*_latency_checks(percentile), *more_checks),
    )


REPRODUCTIONS = (
    _latency("checkmate/fig-09", "p50_s", _alike_before(UNC), _alike_before(CIC)),
    _latency("checkmate/fig-10", "p99_s"),
    measured(
        "checkmate/fig-11",
        "restart time after a kill",
        needs=killed,
        of_cell=recovery_times,
        plot=_plot_restarts,
        about=facts,
        checks=(_restarts_faster(UNC), _restarts_faster(CIC), _recovers_faster(UNC), _recovers_faster(CIC)),
        simulation=simulated(PROTOCOLS, simulated_restart, (_simulated_faster(UNC), _simulated_faster(CIC))),
    ),
)
