"""The plot of protections: throughput or utilization over the failure rate, or the cost of a failure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.wording import significant
from results.protection.contest import compared_rates, curve
from results.protection.matrix import Matrix
from results.views import style
from results.views.protection import COMPARED, HOUR_S, as_csv, title
from results.views.style import BLUE, GREEN, GREY, INK, ORANGE, PINK, RED, SKY, WIDTH_IN, write_figure

COLOURS = (BLUE, ORANGE, GREEN, RED, PINK, SKY, INK)
DASHES = ("-", "--", "-.")  # the next ones where the colours begin again
PANEL_IN, TITLE_CHARACTERS = 4.0, 100
NAME = "matrix"


def write(folder: Path, matrices: Sequence[Matrix]) -> list[Path]:
    """Write matrix.csv, and matrix.png with matrix.svg, into a folder that may be new; returns what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / f"{NAME}.csv"
    table.write_text(as_csv(matrices), encoding="utf-8")
    drawn = write_figure(folder, NAME, partial(plot, matrices))
    return [table] if drawn is None else [table, drawn.with_suffix(".png"), drawn]


def as_svg(matrix: Matrix) -> bytes | None:
    """The plot of one setting; None if nothing of it is known."""
    return style.as_svg(NAME, partial(plot, [matrix]))


def plot(matrices: Sequence[Matrix]) -> Figure | None:
    """A panel for each setting of which something is known; None if there is none."""
    shown = [each for each in matrices if each.can_be_drawn]
    if not shown:
        return None
    figure = Figure(figsize=(WIDTH_IN, PANEL_IN * len(shown)), layout="constrained")
    for axes, matrix in zip(figure.subplots(len(shown), 1, squeeze=False)[:, 0], shown, strict=True):
        axes.set_title(textwrap.fill(title(matrix), TITLE_CHARACTERS), fontsize=9)
        (_draw_rates if matrix.wins else _draw_costs)(axes, matrix)
    return figure


def _draw_rates(axes: Axes, matrix: Matrix) -> None:
    rates = compared_rates(matrix.contestants)
    for number, each in enumerate(matrix.contestants):
        colour, found = COLOURS[number % len(COLOURS)], curve(each, rates)
        dashes = DASHES[number // len(COLOURS) % len(DASHES)]
        axes.plot(HOUR_S * rates, found["value"], color=colour, ls=dashes, label=each.name)
        axes.fill_between(HOUR_S * rates, found["low"], found["high"], color=colour, alpha=0.18, lw=0)
    for win in matrix.wins[:-1]:
        at = HOUR_S * win.until
        axes.axvline(at, color=GREY, ls="--", lw=1)
        axes.annotate(significant(at), (at, 0), xytext=(3, 4), textcoords="offset points", color=INK)
    axes.set(xlabel="failures per hour of time not lost to failures", ylim=(0, None))
    axes.set_ylabel(COMPARED[matrix.compared].axis)
    axes.set_xlim(0, HOUR_S * rates[-1])
    axes.legend(loc="lower left")


def _draw_costs(axes: Axes, matrix: Matrix) -> None:
    """Where no rate is compared: the seconds that a failure costs, with their intervals."""
    known = [(each.label, cost_s) for each in matrix.protections if (cost_s := each.estimates["cost_s"])]
    rows = np.arange(len(known))
    for row, (_, cost_s) in zip(rows, known, strict=True):
        axes.plot([cost_s.value], [row], "D", color=RED, ms=6)
        if cost_s.limits:
            axes.plot(cost_s.limits, [row, row], color=RED)
    axes.set_yticks(rows, [textwrap.fill(label, 40) for label, _ in known])
    axes.invert_yaxis()
    axes.set(xlabel="seconds that a failure costs", xlim=(0, None))
    axes.grid(visible=False, axis="y")
