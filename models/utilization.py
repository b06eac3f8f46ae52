"""Utilization of a checkpointing stream processor, and the checkpoint interval that maximizes it.

Source: Jayasekara, Harwood, Karunasekera, "A Utilization Model for Optimization of Checkpoint Intervals in
Distributed Stream Processing Systems"; the equation numbers below are theirs.

    eq. 1       utilization(0, c, 0, T)
    eq. 2       mean_time_to_failure(L, T)
    eq. 3       utilization(L, c, 0, T); its T_eff (section 3.2) is effective_period(L, 0, T)
    eq. 4       utilization(L, c, R, T); its T_eff (section 3.3) is effective_period(L, R, T)
    eq. 5       utilization(0, c + T' - T, 0, T') with T' = system_period(T, delta, n)
    eq. 6       effective_period(L, R, T'); the U that follows, not printed, is utilization(L, c + T' - T, R, T')
    eq. 7       effective_period(L, R, T' - T)
    eq. 8 = 9   effective_period(L, R, T, delta, n)
    eq. 10      utilization(L, c, R, T, delta, n)
    T*          optimal_interval(L, c) of sections 3.4 and 4.3

`mean_lost_time` is not in the paper, but follows from it: what one failure undoes where U is that of eq. 10.

Times are in any one unit and rates per that unit. Every argument is a scalar or a numpy array; arrays broadcast.
The functions are pure and do not validate: `check_inputs` does, once, where input enters. From input that it
accepts no function overflows, cancels or returns NaN (an expected time beyond the largest double is inf).
"""

import math

import numpy as np
import numpy.typing as npt

from models.inputs import require, require_count, require_rate, require_time

Values = float | npt.NDArray[np.float64]

SERIES_TERMS = 18  # 1 / 20! is below the rounding error of the sum, for arguments up to 1
NEWTON_STEPS = 6  # the start is within a quarter of the root and the relative error squares and halves at each step
FIRST_ORDER_LOAD = 1e-34  # below this c L, the first order is exact to the last digit


def check_inputs(
    *,
    failure_rate: float,
    checkpoint_cost: float,
    recovery_time: float,
    interval: float | None,
    hop_delay: float = 0.0,
    depth: int = 1,
) -> None:
    """Raise `BadInput` naming the first argument that the model does not cover; an interval of None is not checked."""
    require_rate("failure_rate", failure_rate)
    require_time("checkpoint_cost", checkpoint_cost)
    require_time("recovery_time", recovery_time)
    if interval is not None:
        above_cost = f"a finite time above checkpoint_cost ({checkpoint_cost:g})"
        require("interval", interval, interval > checkpoint_cost, above_cost)
    require_time("hop_delay", hop_delay)
    require_count("depth", depth)


def mean_time_to_failure(failure_rate: Values, interval: Values) -> Values:
    """F(T) of eq. 2: the mean time to a failure that is known to fall within `interval`; T/2 as T L goes to 0."""
    expected = load(failure_rate, interval)
    near_load = np.minimum(expected, 1.0)
    remainder = _remainder(near_load)
    near = interval * remainder / (1.0 + near_load * remainder)
    far_load = np.maximum(expected, 1.0)
    far = 1.0 / np.where(expected < 1.0, 1.0, failure_rate) - interval * np.exp(-far_load) / -np.expm1(-far_load)
    return np.where(expected < 1.0, near, far)[()]


def system_period(interval: Values, hop_delay: Values, depth: Values) -> Values:
    """T' of section 4: from the start of a period until its token has travelled all n operators."""
    return interval + np.subtract(depth, 1) * hop_delay


def mean_lost_time(failure_rate: Values, interval: Values, hop_delay: Values = 0.0, depth: Values = 1) -> Values:
    """The mean time that a failure undoes which strikes while the system is up: back to the last complete checkpoint.

    With D = (n - 1) delta, the checkpoint of a period is complete D after its end. So a failure within D of the end of
    a recovery undoes F(D) on average, and any later one D + F(T). (F(T') of eq. 6 is less, as the first D of each T'
    belongs to the period before; eq. 8 takes it out again.)
    """
    travel = np.subtract(depth, 1) * hop_delay
    travel_load = load(failure_rate, travel)
    early = -np.expm1(-travel_load) * mean_time_to_failure(failure_rate, travel)
    return early + np.exp(-travel_load) * (travel + mean_time_to_failure(failure_rate, interval))


def effective_period(
    failure_rate: Values, recovery_time: Values, interval: Values, hop_delay: Values = 0.0, depth: Values = 1
) -> Values:
    """T_eff of eq. 9: the mean time to complete one period, with all failures and recoveries on the way.

    It is (exp(L T) - 1) / L exp(L (R + (n - 1) delta)): eq. 6, in which every period counts the travel of
    its token, less eq. 7. The other stages of T_eff are settings of the arguments; the module lists them.
    Section 4.1 prints the attempts k' from 1 with chances (1 - p)^k' p; its mean (1 - p) / p is that of k from 0.
    """
    period_load = np.maximum(load(failure_rate, interval), 1e-300)
    success = -np.expm1(-period_load) / period_load
    with np.errstate(over="ignore", invalid="ignore"):
        delay = failure_rate * (recovery_time + np.subtract(depth, 1) * hop_delay)
        root = np.exp((period_load + delay) / 2.0)  # in two factors, neither of which overflows before the product does
        return np.where(np.greater(interval, 0), interval * success * root * root, 0.0)[()]


def utilization(
    failure_rate: Values,
    checkpoint_cost: Values,
    recovery_time: Values,
    interval: Values,
    hop_delay: Values = 0.0,
    depth: Values = 1,
) -> Values:
    """U of eq. 10: the share of time that is available for useful work.

    Depth 1 (or hop_delay 0) gives eq. 4, recovery_time 0 in addition eq. 3, failure_rate 0 (allowed here) eq. 1.
    Eq. 5 is not a limit of eq. 10: it leaves out that the travel of a checkpoint's token overlaps with the next
    period, and is this at the cost c + (n - 1) delta and the interval T'.
    """
    period = np.where(np.greater(interval, 0), interval, 1.0)
    useful = np.where(np.greater(interval, 0), np.subtract(interval, checkpoint_cost) / period, 1.0)
    with np.errstate(over="ignore"):
        delay = failure_rate * (recovery_time + np.subtract(depth, 1) * hop_delay)
        return (useful * _survival(failure_rate, interval) * np.exp(-delay))[()]


def optimal_interval(failure_rate: Values, checkpoint_cost: Values) -> Values:
    """T* = (c L + W(-exp(-c L - 1)) + 1) / L (section 3.4): the interval of highest utilization; it includes c.

    With y = L T*, the root of exp(-y) + y - 1 = c L is the same number, and free of the branch point
    of W, where every digit of W + 1 cancels as c L goes to 0. Relative error about 1e-15.
    """
    cost_load = load(failure_rate, checkpoint_cost)
    share = -np.expm1(-_solve_optimum(np.maximum(cost_load, FIRST_ORDER_LOAD)))
    with np.errstate(over="ignore"):
        optimum = checkpoint_cost + share / failure_rate
    return np.where(cost_load > FIRST_ORDER_LOAD, optimum, checkpoint_cost + young(failure_rate, checkpoint_cost))[()]


def optimal_utilization(
    failure_rate: Values,
    checkpoint_cost: Values,
    recovery_time: Values,
    hop_delay: Values = 0.0,
    depth: Values = 1,
) -> Values:
    """U at T*: there dU/dT = 0 makes L (T - c) = 1 - exp(-L T), so U = exp(-L (T* + R + (n - 1) delta))."""
    with np.errstate(over="ignore"):
        lost = optimal_interval(failure_rate, checkpoint_cost) + recovery_time + np.subtract(depth, 1) * hop_delay
        return np.exp(-failure_rate * lost)


def young(failure_rate: Values, checkpoint_cost: Values) -> Values:
    """Young 1974, first order: sqrt(2 c / L)."""
    return math.sqrt(2.0) * np.sqrt(checkpoint_cost) / np.sqrt(failure_rate)


def daly(failure_rate: Values, checkpoint_cost: Values, recovery_time: Values) -> Values:
    """Daly 2003, first order, as the paper compares it in section 5.1: sqrt(2 c (1 / L + R))."""
    return math.sqrt(2.0) * np.sqrt(checkpoint_cost) * np.hypot(1.0 / np.sqrt(failure_rate), np.sqrt(recovery_time))


def daly_higher_order(failure_rate: Values, checkpoint_cost: Values) -> Values:
    """Daly 2006, higher order, as he prints it: tau, the computing time between two checkpoints.

    With M = 1 / L and z = sqrt(c / (2 M)): tau = sqrt(2 c M) (1 + z / 3 + z^2 / 9) - c for c < 2 M, else tau = M.
    The paper's T includes the checkpoint: tau + c meets T* in the three leading orders of sqrt(c L).
    """
    root = np.sqrt(load(failure_rate, checkpoint_cost) / 2.0)
    with np.errstate(over="ignore"):
        series = young(failure_rate, checkpoint_cost) * (1.0 + root / 3.0 + root**2 / 9.0)
        return np.where(root < 1.0, series - checkpoint_cost, np.divide(1.0, failure_rate))[()]


def zhuang(failure_rate: Values, checkpoint_cost: Values, recovery_time: Values) -> Values:
    """Zhuang et al. 2018 at full input rate, as in section 5.1: sqrt(2 c (1 / L + R) + c^2)."""
    return np.hypot(daly(failure_rate, checkpoint_cost, recovery_time), checkpoint_cost)


def load(failure_rate: Values, time: Values) -> Values:
    """L times a time, kept finite."""
    with np.errstate(over="ignore"):
        return np.minimum(np.multiply(failure_rate, time), 1e300)


def _survival(failure_rate: Values, interval: Values) -> Values:
    """x / (exp(x) - 1) of x = L T, from 1 down to 0: the share of time that goes into periods that succeed."""
    expected = np.clip(load(failure_rate, interval), 1e-300, 1e3)
    return expected * np.exp(-expected) / -np.expm1(-expected)


def _remainder(x: Values) -> Values:
    """(exp(x) - 1 - x) / x^2 for -1 <= x <= 1, by its Taylor series."""
    total = np.zeros_like(np.asarray(x, dtype=float))
    for k in reversed(range(SERIES_TERMS)):
        total = total * x + 1.0 / math.factorial(k + 2)
    return total


def _solve_optimum(cost_load: Values) -> Values:
    """The y > 0 with exp(-y) + y - 1 = c L, for c L > 0.

    The left side is convex, so Newton's method from the right of the root descends to it.
    """
    y = cost_load + np.minimum(np.sqrt(2.0 * cost_load), 1.0)
    for _ in range(NEWTON_STEPS):
        small = np.minimum(y, 1.0)
        value = np.where(y < 1.0, small**2 * _remainder(-small), y + np.expm1(-y))
        y = y - (value - cost_load) / -np.expm1(-y)
    return y
