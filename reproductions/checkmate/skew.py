"""`checkmate`, figures 12 and 13: latency, checkpoint time and restart when some items are hot."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.spec import Experiment
from reproductions.checkmate.by_protocol import (
    CIC,
    COOR,
    NAMES,
    UNC,
    by_query,
    draw_by_protocol,
    facts,
    protocols_ratio,
)
from reproductions.checkmate.checkpoints import checkpoint_times
from reproductions.checkmate.experiments import (
    HOT_SHARES,
    LOAD_RATES,
    SHUFFLED,
    load_in_words,
    skewed,
    skewed_and_killed,
    workload_of,
)
from reproductions.checkmate.recoveries import recovery_times
from reproductions.claims import IN_THE_MEAN, SIMILAR, Ratio, at_least, samples
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import like_rows
from reproductions.reproduction import ReproductionCheck
from results.views.style import WIDTH_IN

LATENCY, CHECKPOINT = "p50 of latency", "checkpoint time"
LABELS = {LATENCY: "p50 of latency [s]", CHECKPOINT: "time of rounds (COOR), of\npartitions' checkpoints [s]"}
ALIKE = ("query", "hot_share", "replicate")  # the columns in which runs of a pair are alike


def under_skew(cell: Cell) -> Iterator[Row]:
    """Median latencies of the seconds of the window [s], and how long checkpoints took [s]."""
    seconds = cell.table("latency")
    about = _skew_of(cell.experiment)
    if len(seconds):
        yield about | {"quantity": LATENCY} | samples(seconds["p50_s"])
    for times in checkpoint_times(cell):
        yield about | {"quantity": CHECKPOINT} | times


def restarts_under_skew(cell: Cell) -> Iterator[Row]:
    """The phases of the recovery from the kill [s]."""
    for times in recovery_times(cell):
        yield _skew_of(cell.experiment) | times


def _skew_of(experiment: Experiment) -> Row:
    """Share of hot items, and the load [records/s]."""
    return {"hot_share": workload_of(experiment).hot_sellers, "load_rate": experiment.load.rate}


def _worst(quantity: str) -> ReproductionCheck:
    """COOR is not ahead of the others, over all queries and shares of hot items together."""

    def ratios(table: pd.DataFrame) -> list[Ratio]:
        rows = table[table["quantity"] == quantity]
        return [protocols_ratio(rows, "mean", COOR, other, ALIKE) for other in (UNC, CIC)]

    expected = f"under skew COOR's {quantity} is not below that of UNC and CIC, {IN_THE_MEAN}"
    return at_least(
        f"coordinated.worst_{quantity.split()[0]}", ratios, 1.0, expected, like_rows(("mean",), COOR, UNC, 0.75)
    )


def _plot(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 5.4), layout="constrained")
    panels = figure.subplots(len(LABELS), len(SHUFFLED), sharex=True, sharey="row")
    for (quantity, label), row in zip(LABELS.items(), panels, strict=True):
        shown = table[table["quantity"] == quantity]
        for axes, query in zip(row, SHUFFLED, strict=True):
            _draw_by_hot_share(axes, by_query(shown, query), "mean")
            axes.set(title=query.upper())
        row[0].set(ylabel=label, ylim=(0, None))
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=len(NAMES))
    return figure


def _draw_by_hot_share(axes: Axes, rows: pd.DataFrame, value: str) -> None:
    draw_by_protocol(axes, rows, [HOT_SHARES.index(hot) for hot in rows["hot_share"]], value)
    axes.set_xticks(range(len(HOT_SHARES)), [f"{hot:.0%} hot" for hot in HOT_SHARES])
    axes.set_xlim(-0.5, len(HOT_SHARES) - 0.5)


def _not_faster(name: str, one: str, other: str) -> ReproductionCheck:
    return at_least(
        name,
        lambda table: [protocols_ratio(table, "own_s", one, other, ALIKE)],
        SIMILAR,
        f"under skew {one}'s restart takes at least {SIMILAR:g} times as long as {other}'s, {IN_THE_MEAN}",
        like_rows(("own_s",), one, other, 0.6),
    )


def _as_fast_as(other: str) -> tuple[ReproductionCheck, ReproductionCheck]:
    """COOR's lead in restarts is gone, and none of the others has one instead."""
    return (
        _not_faster(f"coordinated.no_faster_than_{other.lower()}", COOR, other),
        _not_faster(f"coordinated.no_slower_than_{other.lower()}", other, COOR),
    )


def _plot_restarts(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 4.0), layout="constrained")
    panels = figure.subplots(1, len(SHUFFLED), sharey=True)
    for axes, query in zip(panels, SHUFFLED, strict=True):
        rows = by_query(table, query)
        _draw_by_hot_share(axes, rows[rows["hot_share"].notna()], "own_s")
        axes.set(title=query.upper())
    panels[0].set(ylabel="restart without Spark's part [s]", ylim=(0, None))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=len(NAMES))
    return figure


REPRODUCTIONS = (
    *(
        measured(
            f"checkmate/fig-12{letter}",
            f"latency and checkpoint time by share of hot items, at {load_in_words(rate)}",
            needs=partial(skewed, rate),
            of_cell=under_skew,
            plot=_plot,
            about=facts,
            checks=(_worst(LATENCY), _worst(CHECKPOINT)),
        )
        for letter, rate in zip("ab", LOAD_RATES, strict=True)
    ),
    measured(
        "checkmate/fig-13",
        f"restart time by share of hot items, at {load_in_words(LOAD_RATES[0])}",
        needs=skewed_and_killed,
        of_cell=restarts_under_skew,
        plot=_plot_restarts,
        about=facts,
        checks=(*_as_fast_as(UNC), *_as_fast_as(CIC)),
    ),
)
