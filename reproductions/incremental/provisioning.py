"""`incremental`, figure 7: how long a new host takes, compared with the model of a cloud: uniform, 2 to 6 min."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from experiments.delays import new_machine
from reproductions.incremental.availability import facts
from reproductions.incremental.experiments import arrived, shape_of
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import InRows, scaled_rows
from reproductions.reproduction import holds
from results.checks.rules import NotEnough, between
from results.views.style import BLUE, GREY, INK, new_figure

MODEL = new_machine(1 / 60)  # in minutes of a cloud
UNLIKELY = 0.05  # how often so many delays of the model have a larger distance from it
EARLY_S, LATE_S = 0.1, 2.0  # a strike may be late, and a host takes a moment to start


def delays(cell: Cell) -> Iterator[Row]:
    """For each host that died, in minutes of the cloud: until it was back, and until it had a Spark executor; null:
    never. `minute_s` is how long such a minute lasts in the run [s]."""
    minute_s = 60 * shape_of(cell.experiment).time_scale
    for _, row in cell.table("faults").iterrows():
        away_s = None if pd.isna(row["healed_ns"]) else (row["healed_ns"] - row["actual_ns"]) / 1e9
        up_s = None if pd.isna(row["executors_ns"]) else (row["executors_ns"] - row["actual_ns"]) / 1e9
        yield {
            "host": row["targets"],
            "back_min": None if away_s is None else away_s / minute_s,
            "executor_min": None if up_s is None else up_s / minute_s,
            "minute_s": minute_s,
        }


def _hosts(table: pd.DataFrame) -> pd.DataFrame:
    """The hosts of all runs with `back_min`, infinite of one that never came back; raises `NotEnough` without a run."""
    if "host" not in table or table["host"].isna().any():
        raise NotEnough("a run is missing, or no host died in it")
    return table.assign(back_min=table["back_min"].astype(float).fillna(np.inf))


def _distance(table: pd.DataFrame) -> pd.DataFrame:
    """Kolmogorov's distance of the measured delays from the model's law, in critical values."""
    found = np.sort(_hosts(table)["back_min"].to_numpy())
    law = np.clip((found - MODEL.low) / (MODEL.high - MODEL.low), 0.0, 1.0)
    count = found.size
    steps = np.arange(count + 1) / count
    distance = max(float(np.max(steps[1:] - law)), float(np.max(law - steps[:-1])))
    return pd.DataFrame(
        {"samples": [count], "distance": [distance], "of_critical": [distance / stats.kstwo.ppf(1 - UNLIKELY, count)]}
    )


def _range(table: pd.DataFrame) -> pd.DataFrame:
    rows = _hosts(table)[["back_min", "minute_s"]].astype(float)
    early_s = (MODEL.low - rows["back_min"]) * rows["minute_s"]
    return rows.assign(early_s=early_s, late_s=(rows["back_min"] - MODEL.high) * rows["minute_s"])


def _plot(table: pd.DataFrame) -> Figure:
    figure, axes = new_figure(3.3)
    hosts = table["host"].notna().sum() if "host" in table else 0  # also those that never came back
    for column, color, label in (("back_min", BLUE, "host is back"), ("executor_min", GREY, "host has an executor")):
        values = np.sort(table[column].dropna().to_numpy(dtype=float)) if column in table else np.empty(0)
        if values.size:
            axes.step(values, np.arange(1, values.size + 1) / hosts, where="post", color=color, label=label)
    axes.plot([MODEL.low, MODEL.high], [0, 1], color=INK, ls="--", label="model")
    axes.set(xlabel="time to a new host [minutes of the cloud]", ylabel="share of hosts", ylim=(0, 1.02))
    axes.legend(loc="lower right")
    return figure


def _all_at_once(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(back_min=table["back_min"].min())


REPRODUCTIONS = (
    measured(
        "incremental/fig-07",
        "distribution of the time to a new host, against the model",
        needs=arrived,
        of_cell=delays,
        plot=_plot,
        checks=(
            holds(
                "provisioning.as_modelled",
                _distance,
                [between("of_critical", None, 1.0)],
                lambda found: f"distance {found['distance'].iat[0]:.2f} of {found['samples'].iat[0]} hosts",
                "Kolmogorov's distance from 2 to 6 minutes, all alike, is below its critical value at 5 %",
                InRows("every host is back as soon as the first", _all_at_once),
            ),
            holds(
                "provisioning.range",
                _range,
                [between("early_s", None, EARLY_S), between("late_s", None, LATE_S)],
                lambda found: f"{found['back_min'].min():.2f} to {found['back_min'].max():.2f} min",
                f"no host is back {EARLY_S:g} s of the run before 2 minutes of the cloud, or {LATE_S:g} s after 6",
                scaled_rows("back_min", 0.3, topology=2),
            ),
        ),
        about=facts,
    ),
)
