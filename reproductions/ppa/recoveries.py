"""`ppa`, figures 7, 8 and 10: recovery latency of one host and of all hosts, by technique.

As in the paper, recovery latency of a partition lasts from the notice of its loss until it is as far as it was before
on every input. That of a kill is the longest of its lost partitions. What is restored takes the longer the older its
checkpoint is, and each run has several kills at different ages: techniques are compared kill by kill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.spec import Experiment
from reproductions.claims import Ratio, at_least, mean_ratio
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import Plant, scaled_rows
from reproductions.ppa.experiments import (
    INTERVALS_S,
    KILLS_AT_S,
    RATES,
    SETTINGS,
    USUAL_INTERVAL_S,
    WINDOWS_S,
    Mode,
    all_lost,
    all_lost_partially_active,
    mode_of,
    one_lost,
    window_of,
)
from reproductions.reproduction import Reproduction, ReproductionCheck
from results.checks.rules import NotEnough
from results.summary.lost_partitions import by_fault
from results.views.style import BLUE, ORANGE, WIDTH_IN, legend_above

SETTING = ["window_s", "rate"]
KILL = [*SETTING, "interval_s", "kill", "replicate"]
FLAT = 0.2  # how much more than the shortest the longest active recovery may take
TENTH = 0.1
NEARLY = 1.1
NOTHING_LOST = dict.fromkeys(("latency_s", "promoted_s", "age_s"), float("nan")) | {"lost": 0, "promoted": 0}
COLORS = dict(zip(RATES, (BLUE, ORANGE), strict=True))


class Part(NamedTuple):
    """Some of the kills: those of a technique, with so many seconds between checkpoints, at a load, with a window.

    `kill` leaves only the one of this number in each run.
    """

    mode: Mode
    interval_s: float | None = USUAL_INTERVAL_S
    rate: float | None = None
    window_s: float | None = None
    kill: int | None = None


def facts(cell: Cell) -> Row:
    """What is known of a cell, whether it has been run or not."""
    experiment = cell.experiment
    return {
        "mode": mode_of(experiment).value,
        "window_s": window_of(experiment),
        "rate": experiment.load.rate,
        "interval_s": experiment.engine.checkpoint_interval_s,
    } | cell.origin


def latencies(cell: Cell) -> Iterator[Row]:
    """A row for each kill: its recovery latency [s], `latency_s`, and that of its partitions that had a copy,
    `active_s`; the age of the oldest checkpoint that was restored, `age_s` [s]; how many partitions were lost and how
    many copies were promoted.

    The latency is not known if nothing was lost, or if a lost partition was not seen to arrive.
    """
    found = cell.table("partition_recoveries")
    if found.empty:
        return
    faults = by_fault(found)
    for number in range(len(KILLS_AT_S)):
        row = faults.loc[number] if number in faults.index else pd.Series(NOTHING_LOST)
        yield {
            "kill": number + 1,
            "latency_s": _known(row["latency_s"]),
            "active_s": _known(row["promoted_s"]),
            "age_s": float(row["age_s"]),
            "lost": int(row["lost"]),
            "promoted": int(row["promoted"]),
        }


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


def by_kill(table: pd.DataFrame, part: Part, column: str = "latency_s") -> pd.Series:
    """What was measured at each kill of a part, by `KILL`; raises `NotEnough` if some are missing.

    A kill after which nothing was promoted has no `active_s` that could be missing.
    """
    chosen = table["mode"] == part.mode.value
    if column == "active_s":
        chosen &= table["promoted"] != 0
    for name in ("interval_s", "rate", "window_s"):
        if (wanted := getattr(part, name)) is not None:
            chosen &= table[name] == wanted
    rows = table[chosen]
    if rows.empty or column not in rows or rows[column].isna().all():
        raise NotEnough(f"no run has measured {column} of {part.mode.value}")
    lacking = rows[rows[column].isna()]
    if len(lacking):
        names = {
            f"{part.mode.value} w{r.window_s:g} r{r.rate:g} c{r.interval_s:g} #{r.replicate}"
            for r in lacking.itertuples()
        }
        raise NotEnough(f"{column} is not known of every kill of {', '.join(sorted(names))}")
    found = rows if part.kill is None else rows[rows["kill"] == part.kill]
    return found.set_index(KILL)[column].astype(float)


def _times(
    what: str,
    over: Part,
    under: Part,
    across: Sequence[str] = (),
    columns: tuple[str, str] = ("latency_s", "latency_s"),
) -> Callable[[pd.DataFrame], list[Ratio]]:
    """How many times as long the kills of one part take as those of the other: pairs of runs that differ by `across`.

    A pair of runs counts once, with the geometric mean over its kills. The kills of one run do not tell how runs
    differ.
    """

    def compare(table: pd.DataFrame) -> list[Ratio]:
        parts = [by_kill(table, part, column) for part, column in zip((over, under), columns, strict=True)]
        longer, shorter = (np.log(each.droplevel(list(across)) if across else each) for each in parts)
        of_kills = pd.concat([longer, shorter], axis="columns", keys=["over", "under"]).dropna()
        pairs = np.exp(of_kills.groupby([name for name in of_kills.index.names if name != "kill"]).mean())
        return [mean_ratio(what, zip(pairs["over"], pairs["under"], strict=True))]

    return compare


def _flat(table: pd.DataFrame) -> list[Ratio]:
    """Each setting of PPA-1.0 over each other one."""
    found = []
    for over, under in permutations(SETTINGS, 2):
        longer, shorter = (Part(Mode.ALL, window_s=window_s, rate=rate) for window_s, rate in (over, under))
        what = "w{:g} r{:g} over w{:g} r{:g}".format(*over, *under)
        found += _times(what, longer, shorter, SETTING)(table)
    return found


def _latency(factor: float, mode: Mode, **where: float) -> Plant:
    return scaled_rows("latency_s", factor, mode=mode.value, **where)


ORDERED = (
    at_least(
        "ppa.half_not_before_all",
        _times("PPA-0.5 over PPA-1.0", Part(Mode.HALF), Part(Mode.ALL)),
        1.0,
        "PPA-0.5 takes at least as long as PPA-1.0",
        _latency(30.0, Mode.ALL),
    ),
    at_least(
        "ppa.none_not_before_half",
        _times("PPA-0 over PPA-0.5", Part(Mode.NONE), Part(Mode.HALF)),
        1.0,
        "PPA-0 takes at least as long as PPA-0.5",
        _latency(0.03, Mode.NONE),
    ),
    at_least(
        "ppa.active_part",
        _times(
            "PPA-1.0 over the copies in PPA-0.5", Part(Mode.ALL), Part(Mode.HALF), columns=("latency_s", "active_s")
        ),
        1 / NEARLY,
        f"copies in PPA-0.5 take at most {NEARLY:g} times as long as PPA-1.0",
        scaled_rows("active_s", 1.5, mode=Mode.HALF.value),
    ),
)
WORST = partial(Part, rate=RATES[-1], window_s=WINDOWS_S[-1])  # the setting that passive recovery suffers from most
BY_TECHNIQUE = (
    at_least(
        "active.flat",
        _flat,
        1 / (1 + FLAT),
        f"PPA-1.0 varies by less than {FLAT:.0%} over windows and loads",
        _latency(1.4, Mode.ALL, rate=RATES[-1]),
    ),
    at_least(
        "active.tenth_of_passive",
        _times("PPA-0 over PPA-1.0", WORST(Mode.NONE, INTERVALS_S[-1]), WORST(Mode.ALL), ["interval_s"]),
        1 / TENTH,
        f"PPA-1.0 takes at most {TENTH:g} of PPA-0, with the longest window, load and checkpoint interval",
        _latency(0.05, Mode.NONE, interval_s=INTERVALS_S[-1]),
    ),
    at_least(
        "passive.grows_with_interval",
        _times(
            f"PPA-0 every {INTERVALS_S[-1]:g} s over every {INTERVALS_S[0]:g} s",
            Part(Mode.NONE, INTERVALS_S[-1]),
            Part(Mode.NONE, INTERVALS_S[0]),
            ["interval_s"],
        ),
        1.0,
        f"PPA-0 takes longer with checkpoints every {INTERVALS_S[-1]:g} s than every {INTERVALS_S[0]:g} s",
        _latency(20.0, Mode.NONE, interval_s=INTERVALS_S[0]),
    ),
    *(
        at_least(
            f"{name}.grows_with_rate",
            _times(
                f"{mode.value} at {RATES[-1]:g} over {RATES[0]:g} records/s",
                Part(mode, interval_s, RATES[-1]),
                Part(mode, interval_s, RATES[0]),
                ["rate"],
            ),
            1.0,
            f"{mode.value} takes longer at twice the load",
            _latency(20.0, mode, rate=RATES[0]),
        )
        for name, mode, interval_s in (("passive", Mode.NONE, None), ("storm", Mode.STORM, USUAL_INTERVAL_S))
    ),
)
FIRST = 1  # before this kill the input is as long as the longest window, which is what the paper's Storm replays
STORM_SOONER = at_least(
    "storm.before_rare_checkpoints",
    _times(
        f"PPA-0 every {INTERVALS_S[-1]:g} s over Storm, first kill",
        Part(Mode.NONE, INTERVALS_S[-1], window_s=WINDOWS_S[-1], kill=FIRST),
        Part(Mode.STORM, window_s=WINDOWS_S[-1], kill=FIRST),
        ["interval_s"],
    ),
    1.0,
    f"PPA-0 with checkpoints every {INTERVALS_S[-1]:g} s takes at least as long as Storm if Storm replays one window",
    _latency(20.0, Mode.STORM),
)


def _techniques(rows: pd.DataFrame) -> pd.Series:
    """What stands below the axis for each row: the technique, and the interval where that is compared."""
    compared = rows["mode"] == Mode.NONE.value
    return rows["mode"] + (", " + rows["interval_s"].map("{:g} s".format)).where(compared, "")


def _plot(table: pd.DataFrame) -> Figure:
    """A panel for each window: each kill by technique and load, and the median of each setting as a bar."""
    lengths = sorted(table["window_s"].unique())
    table = table.assign(technique=_techniques(table))
    places = {name: at for at, name in enumerate(dict.fromkeys(table["technique"]))}
    figure = Figure(figsize=(WIDTH_IN, 4.4), layout="constrained")
    for panel, length_s in zip(figure.subplots(1, len(lengths), sharey=True, squeeze=False)[0], lengths, strict=True):
        for (rate, technique), rows in table[table["window_s"] == length_s].groupby(["rate", "technique"]):
            values = rows["latency_s"].astype(float).dropna()
            at, color = places[str(technique)] + (-0.17 if rate == RATES[0] else 0.17), COLORS[float(str(rate))]
            panel.plot([at] * len(values), values, "o", ms=4, color=color, label=f"{rate:g} records/s")
            panel.hlines(values.median(), at - 0.15, at + 0.15, color=color, lw=2)
        panel.set(title=f"windows of {length_s:g} s", yscale="log")
        panel.set_xticks(range(len(places)), list(places), rotation=60, ha="right", fontsize=8)
    figure.axes[0].set_ylabel("recovery latency [s]")
    legend_above(figure, fontsize=8)
    return figure


def _figure(
    id: str, what: str, needs: Callable[[int], Sequence[Experiment]], checks: tuple[ReproductionCheck, ...]
) -> Reproduction:
    return measured(id, what, needs, of_cell=latencies, plot=_plot, checks=checks, about=facts)


REPRODUCTIONS = (
    _figure("ppa/fig-07", "recovery latency after one host is lost", one_lost, (*BY_TECHNIQUE, *ORDERED)),
    _figure(
        "ppa/fig-08",
        "recovery latency after all hosts are lost",
        all_lost,
        (*BY_TECHNIQUE, *ORDERED, STORM_SOONER),
    ),
    _figure(
        "ppa/fig-10", "recovery latency by share of copies after all hosts are lost", all_lost_partially_active, ORDERED
    ),
)
