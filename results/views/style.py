"""The style of all figures: plots of runs and figures of the papers.

Colours are those of Okabe and Ito, which people with any colour vision tell apart; figures use few others, so that a
page can restyle them.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.typing import RcKeyType

INK, RULE, PAPER = "#1f2933", "#d5dae1", "#ffffff"
BLUE, SKY, GREEN, ORANGE, RED, PINK, GREY = "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7", "#8a929c"
YELLOW = "#f0e442"
WIDTH_IN = 9.6
_DRAWING = threading.Lock()
STYLE: dict[RcKeyType, object] = {
    "font.family": "DejaVu Sans", "font.size": 10, "axes.titlesize": 11, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": RULE, "grid.linewidth": 0.7, "axes.edgecolor": RULE, "text.color": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "figure.facecolor": PAPER,
    "axes.facecolor": PAPER, "legend.frameon": False, "legend.fontsize": 9, "lines.linewidth": 1.6,
    "svg.fonttype": "path",
}  # fmt: skip


def new_figure(height_in: float) -> tuple[Figure, Axes]:
    """A figure of the common width with one pair of axes."""
    figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
    return figure, figure.subplots()


def legend_above(figure: Figure, fontsize: float | None = None) -> None:
    """One legend for all panels of a figure, above them, that has each label once."""
    found = [zip(*panel.get_legend_handles_labels(), strict=True) for panel in figure.axes]
    labels = {label: handle for panel in found for handle, label in panel}
    figure.legend(labels.values(), labels.keys(), loc="outside upper center", ncols=3, fontsize=fontsize)


def write_figure(folder: Path, name: str, draw: Callable[[], Figure | None]) -> Path | None:
    """Draw in our style and write NAME.png and NAME.svg; returns the SVG, or None where there is nothing to draw."""
    with _our_style(name):
        figure = draw()
        if figure is None:
            return None
        FigureCanvasAgg(figure)
        figure.savefig(folder / f"{name}.png", dpi=144)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return folder / f"{name}.svg"


def as_svg(name: str, draw: Callable[[], Figure | None]) -> bytes | None:
    """Draw in our style, as `write_figure` does; returns the SVG, or None where there is nothing to draw."""
    with _our_style(name):
        figure = draw()
        if figure is None:
            return None
        written = io.BytesIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


@contextmanager
def _our_style(name: str) -> Iterator[None]:
    """One thread at a time draws in it: matplotlib's settings are those of the whole process.

    A salt of its own keeps the ids of one figure apart from those of the others on the same page.
    """
    with _DRAWING, rc_context(STYLE | {"svg.hashsalt": name}):
        yield
