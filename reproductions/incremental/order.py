"""`incremental`, figures 18 to 20: what order-preserving batches and checkpoint intervals cost without a failure.

Of records as they come, the paper's runs take checkpoints. On the testbed the output of such runs is out only with the
checkpoint, so that its latency is not that of processing. Here they take none: they cost less than the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.loads import LoadMode
from experiments.spec import Experiment
from reproductions.claims import Ratio, at_least, paired_ratio
from reproductions.incremental.experiments import INTERVALS_S, Order, latencies, order_of, ordered, throughputs
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import scaled_rows
from reproductions.reproduction import Reproduction, ReproductionCheck
from results.checks.rules import NotEnough
from results.views.style import BLUE, ORANGE, WIDTH_IN, legend_above, new_figure

COLORS = {Order.TUPLES.value: ORANGE, Order.BATCHES.value: BLUE}
EQUAL = 0.97  # of the throughput without order
*SHORTER, LONG = INTERVALS_S


def facts(cell: Cell) -> Row:
    """What is known of a cell, whether it has been run or not; `rate` is null at full load."""
    experiment = cell.experiment
    return {
        "order": order_of(experiment).value,
        "interval_s": experiment.engine.checkpoint_interval_s,
        "rate": experiment.load.rate if experiment.load.mode is LoadMode.RATE else None,
    } | cell.origin


def costs(cell: Cell) -> Iterator[Row]:
    """At full load, `throughput` [records/s]; else mean and 99th percentile of the latency of slides [s]."""
    (run,) = cell.table("runs").to_dict("records")
    if cell.experiment.load.mode is LoadMode.SATURATING:
        yield {"throughput": run["records_committed"] / run["window_s"]}
        return
    found = cell.table("query_latencies")
    if len(found):
        latency_s = found["latency_s"].astype(float)
        yield {"latency_s": float(latency_s.mean()), "p99_s": float(latency_s.quantile(0.99))}


def _compared(
    column: str, by: str, compared: Sequence[tuple[str | float, str | float, str]]
) -> Callable[[pd.DataFrame], list[Ratio]]:
    """Orders or intervals over others, in pairs of runs of the same load and seed; a single pair decides nothing.

    `compared` names both, and says in words what is over what.
    """

    def compare(table: pd.DataFrame) -> list[Ratio]:
        of_load = table[table["rate"].isna() == (column == "throughput")]
        if column not in of_load or of_load.empty or of_load[column].isna().any():
            raise NotEnough(f"{column} is not known of every run")
        known = of_load.astype({"rate": float, column: float}).fillna({"rate": 0.0})
        pairs = ("rate", "replicate")
        return [paired_ratio(what, known, column, by, over, under, pairs) for over, under, what in compared]

    return compare


def _draw(axes: Axes, table: pd.DataFrame, column: str, x: str, labels: tuple[str, str]) -> None:
    known = table.dropna(subset=[column, x]) if column in table else table.head(0)
    for (order, _), rows in known.groupby(["order", "replicate"]):
        axes.plot(rows[x], rows[column].astype(float), "o-", color=COLORS[str(order)], label=order)
    highest = float(known[column].max()) if len(known) else 1.0
    axes.set(xlabel=labels[0], ylabel=labels[1], ylim=(0, 1.2 * highest))


def _plot(column: str, x: str, labels: tuple[str, str]) -> Callable[[pd.DataFrame], Figure]:
    def draw(table: pd.DataFrame) -> Figure:
        figure, axes = new_figure(3.3)
        _draw(axes, table, column, x, labels)
        legend_above(figure)
        return figure

    return draw


def _plot_both(table: pd.DataFrame) -> Figure:
    """Throughput at full load, and latency by load."""
    figure = Figure(figsize=(WIDTH_IN, 3.6), layout="constrained")
    at_full_load, by_load = figure.subplots(1, 2)
    _draw(at_full_load, table, "throughput", "order", ("at full load", "throughput [records/s]"))
    _draw(by_load, table, "latency_s", "rate", ("load [records/s]", "mean latency [s]"))
    legend_above(figure)
    return figure


def _figure(
    id: str,
    what: str,
    needs: Callable[[int], Sequence[Experiment]],
    plot: Callable[[pd.DataFrame], Figure],
    *checks: ReproductionCheck,
) -> Reproduction:
    return measured(id, what, needs, of_cell=costs, plot=plot, checks=checks, about=facts)


def _every(over_s: float, under_s: float) -> tuple[float, float, str]:
    return over_s, under_s, f"every {over_s:g} s over every {under_s:g} s"


BATCHED = [(Order.BATCHES.value, Order.TUPLES.value, "batches over records as they come")]
REPRODUCTIONS = (
    _figure(
        "incremental/fig-18",
        "throughput and latency of order-preserving batches against records as they come",
        ordered,
        _plot_both,
        at_least(
            "order.throughput_equal",
            _compared("throughput", "order", BATCHED),
            EQUAL,
            f"batches have at least {EQUAL:g} times the throughput of records as they come",
            scaled_rows("throughput", 0.9, order=Order.BATCHES.value),
        ),
        at_least(
            "order.latency_higher",
            _compared("latency_s", "order", BATCHED),
            1.0,
            "latency in batches is at least that of records as they come",
            scaled_rows("latency_s", 0.3, order=Order.BATCHES.value),
        ),
    ),
    _figure(
        "incremental/fig-19",
        "throughput by checkpoint interval",
        throughputs,
        _plot("throughput", "interval_s", ("checkpoint interval [s]", "throughput [records/s]")),
        at_least(
            "interval.throughput_rises",
            _compared("throughput", "interval_s", [_every(long, short) for short, long in pairwise(INTERVALS_S)]),
            1.0,
            f"no interval has less throughput than the next shorter one, from {INTERVALS_S[0]:g} to {LONG:g} s",
            scaled_rows("throughput", 0.9, interval_s=SHORTER[1]),
        ),
    ),
    _figure(
        "incremental/fig-20",
        "99th percentile of latency by checkpoint interval",
        latencies,
        _plot("p99_s", "interval_s", ("checkpoint interval [s]", "99th percentile of latency [s]")),
        at_least(
            "interval.latency_falls",
            _compared("p99_s", "interval_s", [_every(short, LONG) for short in SHORTER]),
            1.0,
            f"every shorter interval has at least the 99th percentile of {LONG:g} s",
            scaled_rows("p99_s", 0.9, interval_s=SHORTER[1]),
        ),
    ),
)
