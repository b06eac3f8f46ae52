"""The plots of a run, written as PNG and SVG: where the time went, utilization over T, the timeline, and more.

Each plot is a function from a run to a figure, or None where the run lacks what it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.wording import significant
from results.runs.store import Run
from results.summary.findings import (
    EXECUTOR,
    PHASES,
    advice,
    kills_with_recoveries,
    ledger_seconds,
    model_inputs,
    seconds_from,
    table_or_empty,
    the_run,
    took_effect,
    utilizations,
)
from results.tables.schema import LedgerClass
from results.views.charts import available_queries, intervals_s, thinned
from results.views.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PAPER,
    PINK,
    RED,
    SKY,
    WIDTH_IN,
    YELLOW,
    new_figure,
    write_figure,
)
from results.views.tentative import tentative_spans, tentative_windows

CLASS_COLOURS = dict(zip(LedgerClass, (GREEN, SKY, RED, ORANGE, PINK, YELLOW, GREY), strict=True))
AVAILABILITY = {
    "normal": "on time again",
    "available": "measured",
    "planned": "told to go back",
    "predicted": "planned by the model",
}
PHASE_COLOURS = dict(zip(PHASES, (ORANGE, PINK, BLUE, GREY), strict=True))


def ledger(run: Run) -> Figure | None:
    """Where the window went: one stacked bar over the ledger's classes."""
    seconds = ledger_seconds(run)
    if seconds is None:
        return None
    figure, axes = new_figure(1.9)
    left = 0.0
    for name in LedgerClass:
        share = 100 * seconds[name] / seconds["window"]
        if not share:
            continue
        label = f"{name} {significant(share)} %"
        axes.barh(0, share, left=left, color=CLASS_COLOURS[name], edgecolor=PAPER, label=label)
        left += share
    axes.set(yticks=[], xlim=(0, 100), xlabel=f"share of the window of {significant(seconds['window'])} s [%]")
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=7, handlelength=1, columnspacing=1.2)
    return figure


def utilization_over_interval(run: Run) -> Figure | None:
    """Predicted U over the checkpoint interval T, with T*, and with what was measured at the T that was run."""
    inputs, found, best = model_inputs(run), utilizations(run), advice(run)
    if inputs is None:
        return None
    here = inputs.interval_s
    intervals = intervals_s(inputs, None if best is None else best.optimal_interval_s)
    figure, axes = new_figure(3.9)
    axes.plot(intervals, inputs.at(intervals), color=BLUE, label="model, with the costs measured in this run")
    if found.predicted is not None and found.low is not None and found.high is not None:
        arms = [[found.predicted - found.low], [found.high - found.predicted]]
        axes.errorbar(
            [here], [found.predicted], yerr=arms, color=BLUE, fmt="o", ms=4, capsize=5,
            label=f"predicted: {significant(found.predicted)} ({significant(found.low)} to {significant(found.high)})",
        )  # fmt: skip
    if found.measured is not None:
        label = f"measured: {significant(found.measured)} at T = {significant(here)} s"
        axes.plot([here], [found.measured], "D", color=RED, ms=8, mec=PAPER, label=label, zorder=4)
    if best is not None:
        star = f"optimal: {significant(best.optimal_expected)} at T* = {significant(best.optimal_interval_s)} s"
        axes.axvline(best.optimal_interval_s, color=GREEN, ls="--", lw=1.2)
        axes.plot([best.optimal_interval_s], [best.optimal_expected], "*", color=GREEN, ms=13, mec=PAPER, label=star)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="checkpoint interval T [s]", ylabel="utilization U")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def useful_time(run: Run) -> Figure | None:
    """Useful time against the clock, measured and replayed, and below it by how much they differ."""
    rows = table_or_empty(run, "useful_time")
    if rows.empty:
        return None
    rows = thinned(rows)
    figure = Figure(figsize=(WIDTH_IN, 4.4), layout="constrained")
    both, apart = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    both.plot(rows["second"], rows["measured_s"], color=RED, label="measured")
    both.plot(rows["second"], rows["replayed_s"], color=BLUE, ls="--", label="replayed")
    apart.plot(rows["second"], rows["measured_s"] - rows["replayed_s"], color=INK)
    apart.axhline(0.0, color=GREY, lw=1)
    for axes in (both, apart):
        _mark_kills(axes, run, None)
    both.set(ylabel="useful time [s]", ylim=(0, None))
    apart.set(ylabel="difference [s]", xlabel="time in the window [s]; red lines are faults")
    apart.set_xlim(0, _window_s(run, rows))
    both.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def timeline(run: Run) -> Figure | None:
    """Throughput and lag by second, with kills, recoveries and checkpoints; below, what tentative output was worth."""
    throughput, tentative = thinned(table_or_empty(run, "throughput")), tentative_windows(run)
    if throughput.empty:
        return None
    is_tentative = tentative["accuracy"].notna().any()
    heights = (3, 2, 2) if is_tentative else (3, 2)
    figure = Figure(figsize=(WIDTH_IN, sum(heights)), layout="constrained")
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    rate, lag, *_ = panels
    seconds, window_s = throughput["second"], _window_s(run, throughput)
    rate.fill_between(seconds, throughput["committed_records"], step="post", color=BLUE, alpha=0.35, lw=0)
    rate.step(seconds, throughput["committed_records"], where="post", color=BLUE, lw=1, label="committed")
    rate.plot(seconds, throughput["due_records"], color=INK, ls="--", lw=1.2, label="due")
    lag.plot(seconds, throughput["lag_records"], color=INK)
    for axes in (rate, lag):
        _mark_events(axes, run, legend=axes is rate)
        _scale_thousands(axes)
        axes.set_ylim(bottom=0)
    rate.set_ylabel("records per second")
    lag.set(ylabel="lag [records]", xlim=(0, window_s))
    if is_tentative:
        _draw_tentative(panels[-1], run, tentative, window_s)
    panels[-1].set_xlabel("time in the window [s]")
    rate.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5)
    return figure


def _draw_tentative(axes: Axes, run: Run, windows: pd.DataFrame, window_s: float) -> None:
    """The accuracy of each window at its end, beside what is predicted for it, in the spans of tentative output."""
    for i, (begin_s, end_s) in enumerate(tentative_spans(windows, window_s)):
        axes.axvspan(begin_s, end_s, color=PINK, alpha=0.25, lw=0, label=None if i else "tentative, not yet corrected")
    axes.plot(windows["end_s"], windows["predicted"], "_", color=BLUE, ms=9, mew=2, label="output fidelity predicted")
    for lacked, fill in ((windows["throughout"], RED), (~windows["throughout"], PAPER)):
        label = "accuracy of a window" + ("" if fill is RED else " that lacked the same only in part")
        axes.plot(windows["end_s"][lacked], windows["accuracy"][lacked], "D", color=RED, mfc=fill, ms=4, label=label)
    _mark_kills(axes, run, None)
    axes.set(ylabel="accuracy", ylim=(0, 1.02))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def latency(run: Run) -> Figure | None:
    """Percentiles of latency by second, from the time a record was due."""
    rows = table_or_empty(run, "latency")
    if rows.empty:
        return None
    rows = thinned(rows, "max")
    figure, axes = new_figure(3.2)
    for name, label, colour in (("p999_s", "p99.9", RED), ("p99_s", "p99", ORANGE), ("p50_s", "median", BLUE)):
        axes.plot(rows["second"], rows[name], color=colour, label=label, marker=".", ms=4)
    _mark_events(axes, run, legend=False)
    axes.set(ylim=(0, None), xlim=(0, _window_s(run, rows)))
    axes.set(ylabel="latency from when due [s]", xlabel="time in the window [s]")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure


def recoveries(run: Run) -> Figure | None:
    """The phases of every recovery, stacked; of the restart Spark's part is hatched, where it is known."""
    kills = kills_with_recoveries(run)
    kills = kills[kills["faults"].notna()]
    if kills.empty:
        return None
    figure, axes = new_figure(min(1.5 + 0.34 * len(kills), 12.0))
    left = np.zeros(len(kills))
    rows = np.arange(len(kills))
    for phase, colour in PHASE_COLOURS.items():
        seconds = kills[f"{phase}_s"].astype("float64").fillna(0.0).to_numpy()
        axes.barh(rows, seconds, left=left, color=colour, edgecolor=PAPER, label=phase.replace("_", "-"))
        left += seconds
    if kills[f"{EXECUTOR}_s"].notna().any():
        seconds, noticed_s = (kills[f"{part}_s"].astype("float64").fillna(0.0) for part in (EXECUTOR, PHASES[0]))
        label = "Spark's part of the restart"
        axes.barh(rows, seconds, left=noticed_s, color="none", edgecolor=PAPER, hatch="////", label=label)
    names = [f"{at:.0f} s  {host}" for at, host in zip(kills["actual_at_s"], kills["targets"], strict=True)]
    axes.set_yticks(rows, names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="time since the fault [s]")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5)
    return figure


def host_cpu(run: Run) -> Figure | None:
    """CPU time of every host by second, one strip per host."""
    hosts = table_or_empty(run, "hosts")
    if hosts.empty:
        return None
    names = sorted(hosts["host"].unique())
    figure = Figure(figsize=(WIDTH_IN, min(0.9 + 0.72 * len(names), 14.0)), layout="constrained")
    strips = figure.subplots(len(names), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, name in zip(strips, names, strict=True):
        rows = thinned(hosts[hosts["host"] == name].drop(columns="host"))
        axes.fill_between(rows["second"], rows["cpu_s"], step="post", color=GREEN, alpha=0.7, lw=0)
        axes.set_ylabel(name, rotation=0, ha="right", va="center")
        _mark_kills(axes, run, name)
    strips[-1].set(xlabel="time in the window [s], CPU seconds per second; | is a fault", ylim=(0, None))
    strips[-1].set_xlim(0, _window_s(run, hosts))
    return figure


def availability_over_time(run: Run) -> Figure | None:
    """The share of lost queries that are available, as in figure 12 of `incremental`: planned beside measured."""
    found = available_queries(run)
    if found is None:
        return None
    figure, axes = new_figure(3.2)
    drawn = {"predicted": (GREY, ":"), "planned": (BLUE, "--"), "available": (GREEN, "-"), "normal": (ORANGE, "-")}
    for name, (colour, dashes) in drawn.items():
        if name in found:
            shares = [100 * share for share in found[name]]
            axes.step(found["at_s"], shares, where="post", color=colour, ls=dashes, label=AVAILABILITY[name])
    _mark_kills(axes, run, None)
    axes.set(xlabel="time in the window [s]; red lines are faults", ylabel="queries available [%]", ylim=(-2, 102))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
    return figure


PLOTS: dict[str, tuple[str, Callable[[Run], Figure | None]]] = {
    "ledger": ("Where the time went", ledger),
    "utilization": ("Utilization over the checkpoint interval", utilization_over_interval),
    "useful_time": ("Useful time, measured and replayed", useful_time),
    "timeline": ("Timeline: throughput, lag, faults", timeline),
    "recoveries": ("Recovery of every fault", recoveries),
    "availability": ("Queries that are available, of those that faults took", availability_over_time),
    "latency": ("Latency (under a saturating load it grows without bound, by construction)", latency),
    "hosts": ("CPU of the hosts", host_cpu),
}


def write_plots(run: Run) -> dict[str, Path]:
    """Write every plot that the run has the data for as plots/NAME.png and .svg; returns the SVG of each by name."""
    run.plots.mkdir(parents=True, exist_ok=True)
    written = {name: write_figure(run.plots, name, partial(draw, run)) for name, (_, draw) in PLOTS.items()}
    return {name: path for name, path in written.items() if path is not None}


def _window_s(run: Run, rows: pd.DataFrame) -> float:
    facts = the_run(run)
    return float(rows["second"].max() if facts is None else facts["window_s"])


def _scale_thousands(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _mark_events(axes: Axes, run: Run, *, legend: bool = True) -> None:
    """Shade recoveries (death until ready), draw kills as lines, and tick completed checkpoints along the bottom."""
    facts = the_run(run)
    if facts is None:
        return
    start_ns = int(facts["window_start_ns"])
    spans = table_or_empty(run, "recoveries").dropna(subset=["ready_ns"])
    moments = zip(seconds_from(start_ns, spans["death_ns"]), seconds_from(start_ns, spans["ready_ns"]), strict=True)
    for i, (death, ready) in enumerate(moments):
        axes.axvspan(death, ready, color=ORANGE, alpha=0.3, lw=0, label="recovery" if legend and not i else None)
    _mark_kills(axes, run, None, label="fault" if legend else None)
    completed = seconds_from(start_ns, table_or_empty(run, "checkpoints")["completed_ns"])
    done = completed[(completed >= 0) & (completed <= facts["window_s"])]
    if len(done):  # an empty line, not clipped, has no extent, and the layout gives up on it
        axes.plot(
            done, np.zeros(len(done)), "|", color=GREEN, ms=9, mew=1.4, clip_on=False,
            transform=axes.get_xaxis_transform(), label="checkpoint" if legend else None,
        )  # fmt: skip


def _mark_kills(axes: Axes, run: Run, host: str | None, label: str | None = None) -> None:
    kills = kills_with_recoveries(run)
    kills = took_effect(kills)
    for i, (at, targets) in enumerate(zip(kills["actual_at_s"], kills["targets"], strict=True)):
        if host is None or host in targets.split(","):
            axes.axvline(at, color=RED, lw=1.3, label=label if not i else None)
