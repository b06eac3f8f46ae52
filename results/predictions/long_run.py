"""Eq. 10 held against its own process: the mean that it states, and the mean of many simulated windows."""

from __future__ import annotations

import numpy as np

from models.simulation.simulate import simulate
from models.utilization import utilization
from results.predictions.process import Process

RUNS, SEED = 400, 20_190
FAILURES = 200  # of each simulated window, on average
ERRORS = 5.0  # standard errors that the two may be apart


def eq_10(process: Process) -> float:
    """Utilization in the long run, at the rate at which the run was struck and with the costs that it measured."""
    return float(utilization(*_inputs(process)))


def bounds(process: Process) -> tuple[float, float]:
    """Where the mean of the simulated process says that eq. 10 must be."""
    names = ("failure_rate", "checkpoint_cost", "recovery_time", "interval", "hop_delay", "depth")
    found = simulate(**dict(zip(names, _inputs(process), strict=True)), runs=RUNS, failures=FAILURES, seed=SEED)
    away = ERRORS * found.standard_error
    return found.mean - away, found.mean + away


def _inputs(process: Process) -> tuple[float, float, float, float, float, int]:
    recovery_s, cost_s = float(np.mean(process.recoveries_s)), float(np.mean(process.costs_s))
    return process.struck_rate, cost_s, recovery_s, process.interval_s, process.hop_delay_s, process.depth
