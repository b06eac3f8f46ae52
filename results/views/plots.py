"""The plots of a run, written as PNG and SVG.

Each plot is a function from a run to a figure, or None where the run lacks what it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import offset_copy

from experiments.wording import significant
from results.runs.store import Run
from results.summary.findings import (
    EXECUTOR,
    NO_KNOWN_FAULT,
    PHASES,
    advice,
    ledger_seconds,
    model_inputs,
    seconds_from,
    table_or_empty,
    the_run,
    timed_faults,
    timed_recoveries,
    took_effect,
    utilizations,
)
from results.tables.schema import LedgerClass
from results.views.charts import available_queries, intervals_s, recovery_totals, thinned
from results.views.palette import (
    ASKED,
    CHECKPOINT,
    CLASS_COLOURS,
    FAULT,
    MEASURED,
    MODEL,
    PHASE_COLOURS,
    PHASE_NAMES,
    SHADE,
    TENTATIVE,
)
from results.views.style import GREY, INK, PAPER, WIDTH_IN, new_figure, write_figure
from results.views.tentative import tentative_spans, tentative_windows
from results.views.time_axis import commit_rate, phase_spans

AVAILABILITY = {
    "predicted": ("planned by the model", MODEL, "--"),
    "planned": ("told to roll back", ASKED, "--"),
    "normal": ("on time again", MEASURED, ":"),
    "available": ("available", MEASURED, "-"),
}
NOT_MEASURED, NOT_OVER = "catch-up not measured", "not over when the run ended"
MOST_HOSTS = 2  # that are named beside a bar
MANY_FAULTS, MANY_CHECKPOINTS, MANY_RECOVERIES = 40, 150, 30  # beyond which marks are small, and texts of bars few


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
    """U by eq. 10 over the checkpoint interval T, T*, and what was measured and predicted at the T that was run."""
    inputs, found, best = model_inputs(run), utilizations(run), advice(run)
    if inputs is None:
        return None
    here = inputs.interval_s
    intervals = intervals_s(inputs, None if best is None else best.optimal_interval_s)
    figure, axes = new_figure(3.9)
    curve = "expected by eq. 10, at the costs and the fault rate of this run"
    axes.plot(intervals, inputs.at(intervals), color=MODEL, lw=1.4, label=curve)
    if found.predicted is not None and found.low is not None and found.high is not None:
        half = (found.high - found.low) / 2  # the mean may lie outside, and no arm may be of negative length
        label = f"predicted: {significant(found.predicted)} ({significant(found.low)} to {significant(found.high)})"
        look: dict[str, Any] = {"color": MODEL, "zorder": 5}
        axes.errorbar([here], [found.low + half], yerr=half, fmt="none", capsize=8, label=label, **look)
        axes.plot([here], [found.predicted], "_", ms=16, **look)
    if best is not None:
        star = f"best: {significant(best.optimal_expected)} at T* = {significant(best.optimal_interval_s)} s"
        axes.axvline(best.optimal_interval_s, color=MODEL, ls=":", lw=1.2)
        at_best = ([best.optimal_interval_s], [best.optimal_expected])
        axes.plot(*at_best, "*", color=MODEL, mfc=PAPER, ms=13, label=star)
    if found.measured is not None:
        label = f"measured: {significant(found.measured)} at T = {significant(here)} s"
        axes.plot([here], [found.measured], "D", color=MEASURED, ms=7, mec=PAPER, label=label, zorder=4)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="checkpoint interval T [s]", ylabel="utilization U")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def useful_time(run: Run) -> Figure | None:
    """Useful time against the clock, measured and replayed, and below it by how much they differ."""
    rows = table_or_empty(run, "useful_time")
    if rows.empty:
        return None
    rows = thinned(rows, "first")
    figure = Figure(figsize=(WIDTH_IN, 4.4), layout="constrained")
    both, apart = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    both.plot(rows["second"], rows["measured_s"], color=MEASURED, lw=2.6, label="measured")
    both.plot(rows["second"], rows["replayed_s"], color=MODEL, ls="--", lw=1.3, label="replayed")
    apart.plot(rows["second"], rows["measured_s"] - rows["replayed_s"], color=INK)
    apart.axhline(0.0, color=GREY, lw=1)
    for axes in (both, apart):
        _mark_faults(axes, run)
    both.set(ylabel="useful time [s]", ylim=(0, None))
    apart.set(ylabel="difference [s]\n(measured - replayed)", xlabel="time in the window [s]")
    figure.align_ylabels()
    apart.set_xlim(0, _window_s(run, rows))
    _legend_above(both, 3)
    return figure


def timeline(run: Run) -> Figure | None:
    """Throughput and lag, with faults, recoveries and checkpoints; below, what tentative output was worth."""
    throughput, tentative = table_or_empty(run, "throughput"), tentative_windows(run)
    if throughput.empty:
        return None
    throughput = thinned(throughput.assign(committed_rate=commit_rate(run, throughput)))
    is_tentative = tentative["accuracy"].notna().any()
    heights = (3, 2, 2) if is_tentative else (3, 2)
    figure = Figure(figsize=(WIDTH_IN, sum(heights) + 0.3), layout="constrained")
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    rate, lag, *_ = panels
    seconds, window_s = throughput["second"], _window_s(run, throughput)
    _draw_committed(rate, seconds, throughput["committed_rate"])
    rate.plot(seconds, throughput["due_records"], color=ASKED, ls="--", label="due")
    lag.plot(seconds, throughput["lag_records"], color=MEASURED)
    for axes in (rate, lag):
        _mark_events(axes, run)
        _scale_thousands(axes)
        axes.set_ylim(bottom=0)
    rate.set_ylabel("throughput [records/s]")
    lag.set(ylabel="lag [records]", xlim=(0, window_s))
    if is_tentative:
        _draw_tentative(panels[-1], run, tentative, window_s)
    panels[-1].set_xlabel("time in the window [s]")
    figure.align_ylabels()
    _legend_above(rate, 4)
    return figure


def _draw_committed(axes: Axes, seconds: pd.Series, rate: pd.Series) -> None:
    """The rate at which records were committed, with a mark where nothing tells how it goes on."""
    look: dict[str, Any] = {"color": MEASURED, "clip_on": False}  # half of a line at 0 is below the axis
    axes.step(seconds, rate, where="post", label="committed", **look)
    known = rate.last_valid_index()
    if known is not None and known != rate.index[-1]:
        axes.plot([seconds[known]], [rate[known]], "o", ms=5, label="unknown from here", **look)


def _draw_tentative(axes: Axes, run: Run, windows: pd.DataFrame, window_s: float) -> None:
    """The accuracy of each window at its end, beside what is predicted for it, in the spans of tentative output."""
    for i, (begin_s, end_s) in enumerate(tentative_spans(windows, window_s)):
        axes.axvspan(
            begin_s, end_s, color=TENTATIVE, alpha=0.2, lw=0, label=None if i else "tentative, not yet corrected"
        )
    for lacked, fill in ((windows["throughout"], MEASURED), (~windows["throughout"], PAPER)):
        label = "accuracy of a window" + ("" if fill is MEASURED else " that lacked the same only in part")
        drawn: dict[str, Any] = {"color": MEASURED, "mfc": fill, "ms": 4.5, "label": label}
        axes.plot(windows["end_s"][lacked], windows["accuracy"][lacked], "D", **drawn)
    axes.plot(windows["end_s"], windows["predicted"], "_", color=MODEL, ms=9, mew=2, label="output fidelity predicted")
    _mark_faults(axes, run, label=None)
    axes.set(ylabel="accuracy", ylim=(0, 1.02))
    _legend_above(axes, 2)


def latency(run: Run) -> Figure | None:
    """Percentiles of latency by second, from the time a record was due."""
    rows = table_or_empty(run, "latency")
    if rows.empty:
        return None
    rows = thinned(rows, "max")
    figure, axes = new_figure(3.4)
    lines = (("p50_s", "median", "-", 2.0), ("p99_s", "p99", "--", 1.4), ("p999_s", "p99.9", ":", 1.4))
    for name, label, dashes, width in lines:
        axes.plot(rows["second"], rows[name], color=MEASURED, ls=dashes, lw=width, label=label)
    _mark_events(axes, run)
    axes.set(ylim=(0, None), xlim=(0, _window_s(run, rows)))
    axes.set(ylabel="latency from when due [s]", xlabel="time in the window [s]")
    _legend_above(axes, 4)
    return figure


def recoveries(run: Run) -> Figure | None:
    """The phases of every recovery, stacked; of the restart Spark's part is hatched, where it is known."""
    known = timed_recoveries(run)
    if known.empty:
        return None
    many = len(known) > MANY_RECOVERIES
    figure, axes = new_figure(min(1.6 + (0.18 if many else 0.36) * len(known), 12.0))
    seconds = known[[f"{phase}_s" for phase in PHASES]].astype("float64").set_axis(PHASES, axis="columns")
    left, edge = np.zeros(len(known)), 0.0 if many else 1.0
    for phase, colour in PHASE_COLOURS.items():
        if seconds[phase].notna().any():
            axes.barh(known.index, seconds[phase], left=left, color=colour, ec=PAPER, lw=edge, label=PHASE_NAMES[phase])
        left += seconds[phase].fillna(0.0).to_numpy()
    _hatch_executor(axes, known[f"{EXECUTOR}_s"].astype("float64"), seconds["detect"].fillna(0.0))
    is_over = seconds["restore"].notna()
    not_known = seconds["catch_up"].isna()
    for rows, label, marker in ((not_known & is_over, NOT_MEASURED, ">"), (~is_over, NOT_OVER, "x")):
        if rows.any():
            beside = offset_copy(axes.transData, figure, x=3 if many else 7, units="points")
            look: dict[str, Any] = {"color": GREY, "ms": 3 if many else 6, "transform": beside, "label": label}
            axes.plot(left[rows], known.index[rows], marker, **look)
    if not many:
        for row, told in enumerate(recovery_totals(run, known)):
            place = (14 if not_known[row] else 5, 0)
            axes.annotate(told, (left[row], row), place, textcoords="offset points", va="center")
    begins = zip(known["death_at_s"], known["targets"].fillna(NO_KNOWN_FAULT), strict=True)
    names = [f"{at:.0f} s  {_hosts(struck)}" for at, struck in begins]
    step = -(-len(known) // 60)
    axes.set_yticks(known.index[::step], names[::step], fontsize=8 if many else None)
    axes.set_ylim(len(known) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="time since the fault [s]", xlim=(0, 1.1 * left.max() or 1.0))
    _legend_above(axes, 6, last=(NOT_MEASURED, NOT_OVER))
    return figure


def _hosts(targets: str) -> str:
    count = targets.count(",") + 1
    return targets if count <= MOST_HOSTS else f"{count} hosts"


def _hatch_executor(axes: Axes, executor_s: pd.Series, noticed_s: pd.Series) -> None:
    """Hatch the part of the restarts that Spark needed."""
    if executor_s.notna().any():
        look: dict[str, Any] = {"color": PHASE_COLOURS["restart"], "ec": PAPER, "lw": 0.0, "hatch": "////"}
        axes.barh(executor_s.index, executor_s, left=noticed_s, label="of it Spark's executors", **look)


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
        drawn: dict[str, Any] = {"label": "CPU seconds per second"} if axes is strips[0] else {}
        axes.fill_between(rows["second"], rows["cpu_s"], step="post", **drawn, color=MEASURED, alpha=0.6, lw=0)
        axes.set_ylabel(name, rotation=0, ha="right", va="center")
        _mark_faults(axes, run, host=name, label=None)
    strips[0].plot([], [], color=FAULT, lw=1.3, label="fault of this host")
    _legend_above(strips[0], 2)
    strips[-1].set(xlabel="time in the window [s]", ylim=(0, None))
    strips[-1].set_xlim(0, _window_s(run, hosts))
    return figure


def availability_over_time(run: Run) -> Figure | None:
    """The share of lost queries that are available, as in figure 12 of `incremental`: planned beside measured."""
    found = available_queries(run)
    if found is None:
        return None
    figure, axes = new_figure(3.2)
    for name, (label, colour, dashes) in AVAILABILITY.items():
        if name in found:
            shares = 100 * np.array(found[name], dtype=float)  # None becomes NaN, a gap
            axes.step(found["at_s"], shares, where="post", color=colour, ls=dashes, label=label)
    _mark_faults(axes, run)
    axes.set(xlabel="time in the window [s]", ylabel="queries available [%]", ylim=(-2, 102))
    _legend_above(axes, 5)
    return figure


PLOTS: dict[str, tuple[str, Callable[[Run], Figure | None]]] = {
    "ledger": ("Where the time went", ledger),
    "utilization": ("Utilization over the checkpoint interval", utilization_over_interval),
    "useful_time": ("Useful time, measured and replayed", useful_time),
    "timeline": ("Timeline: throughput, lag, faults", timeline),
    "recoveries": ("Every recovery, by its phases", recoveries),
    "availability": ("Queries that are available, of those that were lost", availability_over_time),
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


def _legend_above(axes: Axes, columns: int, last: tuple[str, ...] = ()) -> None:
    """A legend above the axes, in which some labels come last."""
    found = zip(*axes.get_legend_handles_labels(), strict=True)
    entries = sorted(found, key=lambda entry: entry[1] in last)
    axes.legend(*zip(*entries, strict=True), loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)


def _mark_events(axes: Axes, run: Run) -> None:
    """Shade the phases of recoveries, draw faults as lines, and tick completed checkpoints along the bottom."""
    facts = the_run(run)
    if facts is None:
        return
    completed = seconds_from(int(facts["window_start_ns"]), table_or_empty(run, "checkpoints")["completed_ns"])
    done = completed[(completed >= 0) & (completed <= facts["window_s"])]
    _mark_faults(axes, run)
    if len(done):  # an empty line, not clipped, has no extent, and the layout gives up on it
        axes.plot(
            done, np.zeros(len(done)), "|", color=CHECKPOINT, ms=9, mew=1.6 if len(done) <= MANY_CHECKPOINTS else 0.5,
            clip_on=False, transform=axes.get_xaxis_transform(), label="checkpoint",
        )  # fmt: skip
    spans = phase_spans(run)
    for phase, colour in PHASE_COLOURS.items():
        of_phase = [(begin_s, end_s - begin_s) for name, begin_s, end_s in spans if name == phase]
        if of_phase:
            look: dict[str, Any] = {
                "color": colour,
                "alpha": SHADE,
                "lw": 0,
                "zorder": 0.5,
                "label": PHASE_NAMES[phase],
            }
            axes.broken_barh(of_phase, (0, 1), transform=axes.get_xaxis_transform(), **look)


def _mark_faults(axes: Axes, run: Run, *, host: str | None = None, label: str | None = "fault") -> None:
    """Mark each fault that took effect, of a host or of all: by a line, or by a tick where lines hide the rest."""
    faults = took_effect(timed_faults(run))
    of_host = [host is None or host in targets.split(",") for targets in faults["targets"]]
    at_s = faults["actual_at_s"][of_host]
    if len(at_s) > MANY_FAULTS:
        look: dict[str, Any] = {
            "color": FAULT,
            "ms": 9,
            "mew": 0.8,
            "clip_on": False,
            "transform": axes.get_xaxis_transform(),
        }
        axes.plot(at_s, np.ones(len(at_s)), "|", **look, label=label)
        return
    for i, at in enumerate(at_s):
        axes.axvline(at, color=FAULT, lw=1.4, zorder=1.8, label=None if i else label)
