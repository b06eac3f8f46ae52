"""What one finite run can be expected to measure: the model's prediction with an interval for chance and sampling."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.inputs import require, require_count, samples
from models.utilization import check_inputs, utilization

FEWEST_SAMPLES = 3
MOST_FAILURES = 10_000_000  # of one run, which are held at once
PERCENTILES = (2.5, 97.5)


@dataclass(frozen=True)
class Prediction:
    """Utilization as predicted; None is "unknown".

    predicted  eq. 10 at the mean inputs: the long-run value
    low, high  2.5 and 97.5 percentiles of the simulated runs. They are where one measured run should fall and are
               not shifted onto `predicted`
    mean       of the simulated runs; its distance from `predicted` is the effect of the finite window
    """

    predicted: float | None
    low: float | None
    high: float | None
    mean: float | None


@dataclass(frozen=True)
class _Process:
    """Checkpoint and restart in a window, as the model has it; times in seconds."""

    window_s: float
    interval_s: float
    lag_s: float  # a checkpoint completes this long after its period ends: (n - 1) delta
    costs_s: npt.NDArray[np.float64]
    recoveries_s: npt.NDArray[np.float64]
    failures: int | None
    failure_rate: float

    def run(self, rng: np.random.Generator) -> float:
        """Utilization of one simulated run."""
        count = rng.poisson(self.failure_rate * self.window_s) if self.failures is None else self.failures
        failures_s = np.sort(rng.uniform(0.0, self.window_s, count))
        recoveries_s = _draw(rng, self.recoveries_s, count)
        kept_s = self._kept(failures_s.tolist(), recoveries_s.tolist(), rng.uniform(0.0, self.interval_s))
        periods, part = divmod(kept_s / self.interval_s, 1.0)
        costs_s = _draw(rng, self.costs_s, int(periods) + 1)
        # a period that an edge of the window cuts is charged its part of one checkpoint
        return max(0.0, kept_s - costs_s[1:].sum() - part * costs_s[0]) / self.window_s

    def _kept(self, failures_s: Sequence[float], recoveries_s: Sequence[float], phase_s: float) -> float:
        """Seconds of the window in which the system ran and that no failure in the window rolled back."""
        kept_s = 0.0
        up_s = -phase_s - self.interval_s * math.ceil(self.lag_s / self.interval_s)
        for failure_s, recovery_s in zip(failures_s, recoveries_s, strict=True):
            if failure_s >= up_s:  # else it strikes during a recovery, which then starts again
                complete = max(0.0, (failure_s - up_s - self.lag_s) // self.interval_s)
                kept_s += max(0.0, up_s + complete * self.interval_s) - max(0.0, up_s)
            up_s = failure_s + recovery_s
        return kept_s + max(0.0, self.window_s - max(0.0, up_s))


def predict_run(
    *,
    window_s: float,
    interval_s: float,
    checkpoint_costs_s: Sequence[float],
    recovery_times_s: Sequence[float],
    hop_delay_s: float,
    depth: int,
    failures: int | None,
    failure_rate: float,
    runs: int = 2000,
    seed: int,
) -> Prediction:
    """Predict the utilization that one run of `window_s` measures, with a 95 % predictive interval.

    `predicted` is eq. 10 at the mean of the samples and at `failure_rate` [1/s], or at failures / window_s
    when the number of failures is given. The interval comes from `runs` simulated windows: the system is up at a
    random point of its period; exactly `failures` failures strike at uniform times, or a Poisson number at
    `failure_rate`; each costs the time since the last complete checkpoint and a recovery, and one that
    strikes during a recovery starts it again. The interval holds
      - the chance of when failures strike (and of how many, when `failures` is None),
      - the scatter of single checkpoints and recoveries, drawn from the samples,
      - the uncertainty of their means: every simulated run first resamples the samples themselves.
    It does not hold an error of the period, of the hop delay or of the model.

    recovery_times_s: detection + restart of recoveries that no further failure disturbed.
    With fewer than 3 checkpoint costs, or than 3 recovery times where failures can strike, low, high and mean
    are None; so is `predicted` where a mean is missing. Raises `BadInput` as `check_inputs` does.
    """
    _check(window_s, failures, failure_rate, runs, seed)
    rate = failure_rate if failures is None else failures / window_s
    costs_s = samples("checkpoint_costs_s", checkpoint_costs_s)
    recoveries_s = samples("recovery_times_s", recovery_times_s)
    if costs_s.size == 0 or (recoveries_s.size == 0 and rate > 0):
        return Prediction(None, None, None, None)
    cost_s, recovery_s = costs_s.mean(), recoveries_s.mean() if rate > 0 else 0.0
    check_inputs(
        failure_rate=rate or 1.0,  # a run without failures is allowed: eq. 10 is eq. 1 there
        checkpoint_cost=cost_s,
        recovery_time=recovery_s,
        interval=interval_s,
        hop_delay=hop_delay_s,
        depth=depth,
    )
    predicted = float(utilization(rate, cost_s, recovery_s, interval_s, hop_delay_s, depth))
    if costs_s.size < FEWEST_SAMPLES or (rate > 0 and recoveries_s.size < FEWEST_SAMPLES):
        return Prediction(predicted, None, None, None)
    lag_s = (depth - 1) * hop_delay_s
    process = _Process(window_s, interval_s, lag_s, costs_s, recoveries_s, failures, failure_rate)
    rng = np.random.default_rng(seed)
    simulated = np.array([process.run(rng) for _ in range(runs)])
    low, high = np.percentile(simulated, PERCENTILES)
    return Prediction(predicted, float(low), float(high), float(simulated.mean()))


def _check(window_s: float, failures: int | None, failure_rate: float, runs: int, seed: int) -> None:
    require("window_s", window_s, window_s > 0, "a finite time above 0")
    if failures is not None:
        require_count("failures", failures, 0)
    require("failure_rate", failure_rate, failure_rate >= 0, "a finite rate of 0 or more")
    expected = failure_rate * window_s if failures is None else failures
    require("failures", expected, expected <= MOST_FAILURES, f"at most {MOST_FAILURES:,} in the window")
    require_count("runs", runs)
    require_count("seed", seed, 0)


def _draw(rng: np.random.Generator, samples: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Draw `count` values from a resample of the samples, so that the draws carry the uncertainty of the mean."""
    if count == 0:
        return np.empty(0)
    return rng.choice(rng.choice(samples, samples.size), count)
