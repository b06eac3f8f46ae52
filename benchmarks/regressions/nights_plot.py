"""The plot of real nights: how far each metric of each experiment was from its median, night after night."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from results.regression.history import Series
from results.summary.metrics import METRICS
from results.views.palette import FAULT
from results.views.style import BLUE, GREEN, GREY, INK, ORANGE, PINK, SKY, WIDTH_IN, legend_above

COLOURS = {
    "utilization": INK,
    "checkpoint_s": SKY,
    "restore_s": GREEN,
    "restart_s": ORANGE,
    "service_rate": BLUE,
    "p99_latency_s": PINK,
    "detect_s": GREY,
}


def plot(series: Sequence[Series], alarms: Collection[tuple[str, int]]) -> Figure:
    """A panel for each experiment; `alarms` are the experiments and nights (from 1) that were found worse."""
    figure = Figure(figsize=(WIDTH_IN, 3.2 * len(series)), layout="constrained")
    for panel, own in zip(figure.subplots(len(series), sharex=True, squeeze=False)[:, 0], series, strict=True):
        nights = np.arange(1, len(own.runs) + 1)
        for name, colour in COLOURS.items():
            values = np.array([run.metrics.get(name, np.nan) for run in own.runs])
            if not np.isnan(values).all():
                panel.plot(nights, values / np.nanmedian(values) - 1, ".-", color=colour, label=METRICS[name].label)
        for night in (night for experiment, night in alarms if experiment == own.experiment):
            panel.axvline(night, color=FAULT, label="found worse")
        panel.set(title=own.experiment, ylabel="from the median")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    figure.axes[-1].set_xlabel("night")
    legend_above(figure)
    return figure
