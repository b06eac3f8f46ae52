"""Compares eq. 10 with its own process: the mean that it states, and the mean of many simulated windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.simulation.simulate import simulate
from models.utilization import utilization
from results.predictions.process import MeasuredProcess

RUNS, SEED = 400, 20_190
FAILURES = 200  # of each simulated window, on average
ERRORS = 5.0  # standard errors that the two may be apart


class _Inputs(NamedTuple):
    """The inputs of eq. 10, in its order, as the model and the simulation name them."""

    failure_rate: float
    checkpoint_cost: float
    recovery_time: float
    interval: float
    hop_delay: float
    depth: int


def eq_10(process: MeasuredProcess) -> float:
    """Utilization in the long run, at the rate at which the run was struck and with the costs that it measured."""
    return float(utilization(*_inputs(process)))


def bounds(process: MeasuredProcess) -> tuple[float, float]:
    """Where the mean of the simulated process says that eq. 10 must be."""
    found = simulate(**_inputs(process)._asdict(), runs=RUNS, failures=FAILURES, seed=SEED)
    away = ERRORS * found.standard_error
    return found.mean - away, found.mean + away


def _inputs(process: MeasuredProcess) -> _Inputs:
    return _Inputs(
        failure_rate=process.struck_rate,
        checkpoint_cost=float(np.mean(process.costs_s)),
        recovery_time=float(np.mean(process.recoveries_s)),
        interval=process.interval_s,
        hop_delay=process.hop_delay_s,
        depth=process.depth,
    )
