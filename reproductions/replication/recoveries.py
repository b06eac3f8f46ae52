"""`ppa`, figures 7, 8 and 10: recovery latency of one host and of all hosts, by technique.

As in the paper, recovery latency of a partition lasts from the notice of its loss until it is as far as it was before
on every input. That of a run is the longest of its lost partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pandas as pd
from matplotlib.figure import Figure

from experiments.spec import Experiment
from reproductions.checkmate.measuring import Row, measured
from reproductions.measured import Cell
from reproductions.plants import Plant, scaled_rows
from reproductions.replication.experiments import (
    INTERVALS_S,
    RATES,
    USUAL_INTERVAL_S,
    WINDOWS_S,
    Mode,
    all_lost,
    all_lost_partially_active,
    mode_of,
    one_lost,
    window_of,
)
from reproductions.reproduction import Reproduction, ReproductionCheck, holds
from results.checks.rules import NotEnough, between
from results.tables.schema import RecoveredHow
from results.views.style import BLUE, GREEN, GREY, ORANGE, WIDTH_IN

SETTING = ["window_s", "rate"]
FLAT = 0.2  # how much more than the shortest the longest active recovery may take
TENTH = 0.1
NEARLY = 1.1
LOOKS = {Mode.ALL: (GREEN, "o"), Mode.HALF: (BLUE, "s"), Mode.NONE: (ORANGE, "^"), Mode.STORM: (GREY, "v")}


def facts(cell: Cell) -> Row:
    """What is known of a cell, whether it has been run or not."""
    experiment = cell.experiment
    return {
        "mode": mode_of(experiment).value,
        "window_s": window_of(experiment),
        "rate": experiment.load.rate,
        "interval_s": experiment.engine.checkpoint_interval_s,
        "replicate": experiment.seed,
        "run_id": cell.run.run_id if cell.run else None,
        "simulated": False,
    }


def latencies(cell: Cell) -> Iterator[Row]:
    """Recovery latency [s] of the run, `latency_s`, and of its partitions that had a copy, `active_s`, with how many
    partitions were lost and how many copies were promoted; nothing if a lost partition was not seen to arrive."""
    found = cell.table("partition_recoveries")
    if found.empty:
        return
    struck = [RecoveredHow.RESTORED, RecoveredHow.PROMOTED, RecoveredHow.LOST]
    lost = found[found["fault"].notna() & found["how"].isin(struck)]
    if lost.empty or lost["reached_ns"].isna().any():
        return
    took_s = (lost["reached_ns"] - lost["notice_ns"]).astype(float) / 1e9
    of_copies = took_s[lost["how"] == RecoveredHow.PROMOTED]
    yield {
        "latency_s": float(took_s.max()),
        "active_s": float(of_copies.max()) if len(of_copies) else None,
        "lost": len(lost),
        "promoted": len(of_copies),
    }


def medians(table: pd.DataFrame, mode: Mode, column: str = "latency_s", interval_s: float | None = None) -> pd.Series:
    """By window and load, the median over the replicates of a technique; raises `NotEnough` if some are missing."""
    rows = table[table["mode"] == mode.value]
    if interval_s is not None:
        rows = rows[rows["interval_s"] == interval_s]
    if rows.empty or column not in rows or rows[column].isna().all():
        raise NotEnough(f"no run has measured {column} of {mode.value}")
    lacking = rows[rows[column].isna()]
    if len(lacking):
        names = [
            f"{mode.value} w{r.window_s:g} r{r.rate:g} c{r.interval_s:g} #{r.replicate}" for r in lacking.itertuples()
        ]
        raise NotEnough(f"{column} is not known of {', '.join(names)}")
    return rows.groupby(SETTING)[column].median()


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    found = medians(table, Mode.ALL)
    return pd.DataFrame({"spread": [found.max() / found.min() - 1], "low": [found.min()], "high": [found.max()]})


def _best_setting(table: pd.DataFrame) -> pd.DataFrame:
    """The longest window, load and checkpoint interval, which passive recovery suffers from most."""
    best = WINDOWS_S[-1], RATES[-1]
    active, passive = medians(table, Mode.ALL)[best], medians(table, Mode.NONE, interval_s=INTERVALS_S[-1])[best]
    return pd.DataFrame({"active_s": [active], "passive_s": [passive], "ratio": [active / passive]})


def _later(sooner: Callable[[pd.DataFrame], pd.Series], later: Callable[[pd.DataFrame], pd.Series]) -> Callable:
    """By setting, how much the second takes relative to the first."""

    def compare(table: pd.DataFrame) -> pd.DataFrame:
        first, second = sooner(table), later(table)
        return pd.DataFrame({"ratio": (second / first).dropna()})

    return compare


def _of(mode: Mode, column: str = "latency_s", interval_s: float = USUAL_INTERVAL_S) -> Callable[..., pd.Series]:
    return lambda table: medians(table, mode, column, interval_s)


def _ratios(frame: pd.DataFrame) -> str:
    return f"{frame['ratio'].min():.2f} to {frame['ratio'].max():.2f} times"


def _at_least(
    name: str, sooner: Callable[..., pd.Series], later: Callable[..., pd.Series], expected: str, plant: Plant
) -> ReproductionCheck:
    return holds(name, _later(sooner, later), [between("ratio", 1.0, None)], _ratios, expected, plant)


def _latency(factor: float, mode: Mode, **where: float) -> Plant:
    return scaled_rows("latency_s", factor, mode=mode.value, **where)


ORDERED = (
    _at_least(
        "ppa.half_not_before_all",
        _of(Mode.ALL),
        _of(Mode.HALF),
        "PPA-0.5 takes at least as long as PPA-1.0, for every window and load",
        _latency(30.0, Mode.ALL),
    ),
    _at_least(
        "ppa.none_not_before_half",
        _of(Mode.HALF),
        _of(Mode.NONE),
        "PPA-0 takes at least as long as PPA-0.5, for every window and load",
        _latency(0.03, Mode.NONE),
    ),
    holds(
        "ppa.active_part",
        _later(_of(Mode.ALL), _of(Mode.HALF, "active_s")),
        [between("ratio", None, NEARLY)],
        _ratios,
        f"copies in PPA-0.5 take at most {NEARLY:g} times as long as PPA-1.0, for every window and load",
        scaled_rows("active_s", 1.5, mode=Mode.HALF.value),
    ),
)
BY_TECHNIQUE = (
    holds(
        "active.flat",
        _flat,
        [between("spread", 0, FLAT)],
        lambda found: f"{found['low'].iat[0]:.3f} to {found['high'].iat[0]:.3f} s",
        f"PPA-1.0 varies by less than {FLAT:.0%} over windows and loads",
        _latency(1.4, Mode.ALL, rate=RATES[-1]),
    ),
    holds(
        "active.tenth_of_passive",
        _best_setting,
        [between("ratio", 0, TENTH)],
        lambda found: f"{found['active_s'].iat[0]:.3f} s against {found['passive_s'].iat[0]:.2f} s",
        f"PPA-1.0 takes at most {TENTH:g} of PPA-0, with the longest window, load and checkpoint interval",
        _latency(0.05, Mode.NONE, interval_s=INTERVALS_S[-1]),
    ),
    _at_least(
        "passive.grows_with_interval",
        _of(Mode.NONE, interval_s=INTERVALS_S[0]),
        _of(Mode.NONE, interval_s=INTERVALS_S[-1]),
        f"PPA-0 takes longer with checkpoints every {INTERVALS_S[-1]:g} s than every {INTERVALS_S[0]:g} s",
        _latency(20.0, Mode.NONE, interval_s=INTERVALS_S[0]),
    ),
)


def _plot(table: pd.DataFrame) -> Figure:
    lengths = sorted(table["window_s"].unique())
    figure = Figure(figsize=(WIDTH_IN, 4.4), layout="constrained")
    for panel, length_s in zip(figure.subplots(1, len(lengths), sharey=True, squeeze=False)[0], lengths, strict=True):
        rows = table[table["window_s"] == length_s]
        for place, (mode, (color, marker)) in enumerate(LOOKS.items()):
            for interval_s, of_one in rows[rows["mode"] == mode.value].groupby("interval_s"):
                at = [RATES.index(rate) + 0.12 * (place - 1.5) for rate in of_one["rate"]]
                size = 4 + interval_s / 5
                label = f"{mode.value}, checkpoints every {interval_s:g} s"
                panel.plot(at, of_one["latency_s"].astype(float), marker, color=color, ms=size, ls="none", label=label)
        panel.set(title=f"windows of {length_s:g} s", xlabel="load [records/s]", yscale="log", xlim=(-0.5, 1.5))
        panel.set_xticks(range(len(RATES)), [f"{rate:g}" for rate in RATES])
    figure.axes[0].set_ylabel("recovery latency [s]")
    figure.legend(*figure.axes[-1].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=8)
    return figure


def _figure(
    id: str, what: str, needs: Callable[[int], Sequence[Experiment]], checks: tuple[ReproductionCheck, ...]
) -> Reproduction:
    return measured(id, what, needs, of_cell=latencies, plot=_plot, checks=checks, about=facts)


REPRODUCTIONS = (
    _figure("ppa/fig-07", "recovery latency after one host is lost", one_lost, (*BY_TECHNIQUE, *ORDERED)),
    _figure("ppa/fig-08", "recovery latency after all hosts are lost", all_lost, (*BY_TECHNIQUE, *ORDERED)),
    _figure(
        "ppa/fig-10", "recovery latency by share of copies after all hosts are lost", all_lost_partially_active, ORDERED
    ),
)
