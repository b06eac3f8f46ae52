"""How much one experiment scatters from run to run, and what the verdicts make of runs between which nothing changed.

`night_noise.py HOME MINUTES` runs the testbed for a short window with one kill in it, again and again through
`aftershock benchmark`, until the minutes are over; its runs stay in HOME, and a later call adds to them. Prints the
coefficient of variation of each metric over all runs, and the verdicts after each run that has enough before it, each
of which should be *same* or *unknown*.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from results.metrics import METRICS
from results.regression import history
from results.regression.judging import Change
from results.regression.regress import judge_splits

EXPERIMENT = "dataflow-q12"
SETTINGS = ("name=night-noise", "window_s=20", "faults.events.0.at=6")


def run_once() -> None:
    """One run as a user starts it; a run whose checks do not all pass is a measurement like any other."""
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    load = os.getloadavg()[0]
    command = [sys.executable, "-m", "aftershock.cli", "benchmark", EXPERIMENT, *words]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    print(f"run ended with {ended.returncode}, load of the machine before it {load:.1f}", flush=True)
    if ended.returncode > 1:
        print(ended.stderr.rstrip().splitlines()[-1], flush=True)


def coefficients(runs: list[history.Row]) -> dict[str, tuple[int, float, float]]:
    """Of each metric: in how many runs it was measured, its mean, and its standard deviation as a share of that."""
    values = {name: np.array([run.metrics[name] for run in runs if name in run.metrics]) for name in METRICS}
    return {
        name: (len(own), own.mean(), own.std(ddof=1) / own.mean() if own.mean() else 0.0)
        for name, own in values.items()
        if len(own) > 1
    }


def verdicts(series: history.Series) -> Counter[tuple[str, Change]]:
    """How often each metric came to each verdict, looked at after every run that has enough before it."""
    histories = [
        replace(series, runs=series.runs[:count]) for count in range(history.CANDIDATES + 5, len(series.runs) + 1)
    ]
    judged = [judge_splits([history.split(one, (), {})])[0] for one in histories]
    return Counter((one.metric.name, one.verdict) for night in judged for one in night)


def main(home: Path, minutes: float) -> None:
    os.environ["AFTERSHOCK_HOME"] = str(home.absolute())
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        run_once()
    for series in history.all_series():
        runs = list(series.runs)
        print(f"{len(runs)} runs of {series.experiment} on {series.machine}")
        for name, (count, mean, share) in coefficients(runs).items():
            print(
                f"{name:19} in {count} runs, mean {mean:.4g} {METRICS[name].unit}, coefficient of variation {share:.1%}"
            )
        found = verdicts(series)
        print(f"{found.total()} verdicts:", ", ".join(f"{n} {name} {change}" for (name, change), n in found.items()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
