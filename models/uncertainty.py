"""What one finite run can be expected to measure: the model's prediction with an interval for chance and sampling."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from models.inputs import require, require_count, samples
from models.replay.draws import draw_each, means
from models.replay.periods import Periods
from models.replay.process import Faults, replay
from models.replay.work import Array
from models.utilization import check_inputs, utilization

FEWEST_SAMPLES = 3
PRIOR_FAILURES = 0.5  # what the prior of a failure rate counts for, that of Jeffreys: half a failure
MOST_FAILURES = 25_000_000  # of all runs at once, each with the room that the one with the most takes: some 4 GB
PERCENTILES = (2.5, 97.5)
DRAWS, RAREST = 10_000, 0.001  # plans drawn at once, and the least share of them that must follow a rule


@dataclass(frozen=True)
class HostGaps:
    """A rule for plans: each failure strikes one of `hosts` hosts, none of which failed less than `least` before."""

    hosts: int
    least: float


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
    failures_seen: int | None = None,
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
      - the uncertainty of their means: every simulated run first resamples the samples themselves,
      - the uncertainty of `failure_rate`, if `failures_seen` says from how many failures it was estimated: every
        simulated run then has a rate of its own, from the posterior under Jeffreys' prior.
    It does not hold an error of the period, of the hop delay or of the model, nor of a rate that is taken as known.
    A resample of few measurements scatters less than they do: if recoveries scatter by 40 % of their mean, the interval
    from three of them holds about 91 % of runs, from five 93 %, and from ten 95 %.

    recovery_times_s: detection + restart of recoveries that no further failure disturbed.
    failures_seen: 1 or more; None if the rate is known, as that of a law. It is of no use when `failures` is given.
    With fewer than 3 checkpoint costs, or than 3 recovery times where failures can strike, low, high and mean
    are None; so is `predicted` where a mean is missing. Raises `BadInput` as `check_inputs` does.
    """
    _check(window_s, failures, failure_rate, runs, seed)
    if failures_seen is not None:
        require_count("failures_seen", failures_seen)
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
    rng = np.random.default_rng(seed)
    rates = _likely_rates(rng, failure_rate, failures_seen, runs)
    count = np.full(runs, failures) if failures is not None else rng.poisson(rates * window_s)
    faults = _faults(rng, count, window_s, recoveries_s)
    drawn_s = means(rng, costs_s, runs, max(1, round(window_s / interval_s)))
    simulated = _windows(rng, faults, window_s, interval_s, drawn_s, (depth - 1) * hop_delay_s)
    low, high = np.percentile(simulated, PERCENTILES)
    return Prediction(predicted, float(low), float(high), float(simulated.mean()))


def simulate_windows(
    *,
    window: float,
    failures: int,
    checkpoint_cost: float,
    recovery_time: float,
    interval: float,
    hop_delay: float = 0.0,
    depth: int = 1,
    gaps: HostGaps | None = None,
    runs: int = 2000,
    seed: int,
) -> Array:
    """Utilization in windows that begin without a failure and have exactly `failures` at uniform times, (runs,).

    All recoveries and checkpoints are equally long. With `gaps`, only windows count whose failures follow that rule:
    failures are then more evenly spaced than in eq. 10, and cost more. Times are in any one unit.
    Raises `BadInput` as `check_inputs` does, and for gaps that one draw of failures in a thousand or fewer follows.
    """
    _check(window, failures, 0.0, runs, seed)
    check_inputs(
        failure_rate=failures / window or 1.0,
        checkpoint_cost=checkpoint_cost,
        recovery_time=recovery_time,
        interval=interval,
        hop_delay=hop_delay,
        depth=depth,
    )
    rng = np.random.default_rng(seed)
    faults = _faults(rng, np.full(runs, failures), window, np.array([recovery_time]))
    if gaps is not None:
        faults = replace(faults, struck_s=_spaced(rng, gaps, window, failures, runs))
    return _windows(rng, faults, window, interval, np.full(runs, checkpoint_cost), (depth - 1) * hop_delay)


def _likely_rates(rng: np.random.Generator, failure_rate: float, failures_seen: int | None, runs: int) -> Array:
    """The failure rate of each run: the one given, or what it may be if so many failures are all that is known of it.

    After n failures in a time t the rate has a gamma law with mean (n + 1/2) / t (Jeffreys' prior), and t is n / L.
    """
    if failures_seen is None:
        return np.full(runs, failure_rate)
    return rng.gamma(failures_seen + PRIOR_FAILURES, failure_rate / failures_seen, runs)


def _windows(
    rng: np.random.Generator, faults: Faults, window_s: float, interval_s: float, costs_s: Array, lag_s: float
) -> Array:
    """Utilization of windows that open at a random point of a period, (runs,)."""
    runs = costs_s.size
    since_s = -rng.uniform(0.0, interval_s, runs) - interval_s * math.ceil(lag_s / interval_s)
    return replay(Periods(interval_s, costs_s, np.full(runs, lag_s)), faults, window_s, since_s).utilizations


def _check(window_s: float, failures: int | None, failure_rate: float, runs: int, seed: int) -> None:
    require("window_s", window_s, window_s > 0, "a finite time above 0")
    if failures is not None:
        require_count("failures", failures, 0)
    require("failure_rate", failure_rate, failure_rate >= 0, "a finite rate of 0 or more")
    require_count("runs", runs)
    _require_room(failure_rate * window_s if failures is None else failures, runs)
    require_count("seed", seed, 0)


def _require_room(failures: float, runs: int) -> None:
    """Raise `BadInput` unless so many failures of each run can be replayed at once."""
    most = MOST_FAILURES // runs
    require("failures", failures, failures <= most, f"at most {most:,} in the window of each of {runs:,} runs")


def _spaced(rng: np.random.Generator, gaps: HostGaps, window: float, failures: int, runs: int) -> Array:
    """Ascending uniform times of failures that follow the rule, (runs, failures): all others are drawn again."""
    found, kept = np.empty((0, failures)), 1.0
    while len(found) < runs:
        require("gaps", gaps.least, kept > RAREST, f"so short that more than {RAREST:g} of all plans follow them")
        times = np.sort(rng.uniform(0.0, window, (DRAWS, failures)), axis=1)
        host_by_host = np.sort(times + (window + gaps.least) * rng.integers(0, gaps.hosts, times.shape), axis=1)
        follows = (np.diff(host_by_host, axis=1) >= gaps.least).all(axis=1)
        found, kept = np.concatenate([found, times[follows]]), float(follows.mean())
    return found[:runs]


def _faults(
    rng: np.random.Generator, count: npt.NDArray[np.int64], window_s: float, recoveries_s: npt.NDArray[np.float64]
) -> Faults:
    """`count` failures in each run at uniform times, each with a recovery from a resample of the measured ones."""
    most = int(count.max(initial=0))
    _require_room(most, count.size)
    struck_s = rng.uniform(0.0, window_s, (count.size, most))
    struck_s[np.arange(most) >= count[:, np.newaxis]] = np.inf
    struck_s.sort(axis=1)
    drawn_s = np.zeros(struck_s.shape)
    if recoveries_s.size:
        weights = rng.exponential(size=(count.size, recoveries_s.size))
        drawn_s = recoveries_s[draw_each(rng, weights, most)]
    return Faults(struck_s, drawn_s, np.zeros(struck_s.shape))
