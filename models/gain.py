"""What one checkpoint interval gains in utilization over another, down to gains that are all but zero.

Source: sections 5 and 5.1 of the `utilization` paper, whose gains are ratios of eq. 10 at two intervals.
"""

from __future__ import annotations

import numpy as np

from models.utilization import SERIES_TERMS, Values, load


def gain(failure_rate: Values, checkpoint_cost: Values, interval: Values, other: Values) -> Values:
    """U(interval) / U(other) - 1 by eq. 10: the relative gain of running at `interval` rather than at `other`.

    Both intervals are above the checkpoint cost c; the failure rate is 0 or more. Scalars or arrays, which broadcast.
    R, delta and n scale both utilizations alike and cancel. -1 is all, and inf a gain beyond the largest double.

    The logarithm of the ratio is composed of differences that are each taken before they can cancel, so the
    relative error is a few roundings, except where the gain itself hangs on the last digits of its arguments: between
    intervals on both sides of T* that are about equally good, and within a share e of T*, where it is about 1e-16 / e.
    """
    longer, shorter = np.maximum(interval, other), np.minimum(interval, other)
    apart = longer - shorter
    with np.errstate(over="ignore"):
        useful = _log_ratio(
            (longer - checkpoint_cost) / longer,
            (shorter - checkpoint_cost) / shorter,
            (checkpoint_cost / shorter) * (apart / longer),
        )
        log_gain = useful - _log_growth(failure_rate, longer, shorter, apart)
        return np.expm1(np.where(np.greater_equal(interval, other), log_gain, -log_gain))[()]


def _log_growth(failure_rate: Values, longer: Values, shorter: Values, apart: Values) -> Values:
    """log(g(x) / g(y)) of g(x) = (exp(x) - 1) / x at x = L longer and y = L shorter."""
    x, y, between = load(failure_rate, longer), load(failure_rate, shorter), load(failure_rate, apart)
    near_x, near_y = np.minimum(x, 1.0), np.minimum(y, 1.0)
    near_growth = np.where(near_y > 0, np.expm1(near_y) / np.where(near_y > 0, near_y, 1.0), 1.0)
    near = np.log1p(np.minimum(between, 1.0) * _growth_slope(near_x, near_y) / near_growth)
    x, y = np.maximum(x, 1e-300), np.maximum(y, 1e-300)
    fails = _log_ratio(-np.expm1(-x), -np.expm1(-y), -np.exp(-y) * np.expm1(-between))
    return np.where(x <= 1.0, near, between + fails - _log_ratio(longer, shorter, apart))


def _log_ratio(larger: Values, smaller: Values, difference: Values) -> Values:
    """log(larger / smaller) of positive numbers from their difference, which has digits that theirs have lost."""
    close = np.less(larger, 2.0 * np.asarray(smaller))
    near = np.log1p(np.where(close, difference, 0.0) / smaller)
    return np.where(close, near, np.log(larger) - np.log(smaller))


def _growth_slope(x: Values, y: Values) -> Values:
    """(g(x) - g(y)) / (x - y) for 0 <= x, y <= 1: the sum over k of h_k(x, y) / (k + 2)!, of complete symmetric h_k."""
    total: Values = 0.0
    symmetric: Values = 1.0
    power: Values = 1.0
    factorial = 2.0
    for k in range(SERIES_TERMS):
        total = total + symmetric / factorial
        power = power * y
        symmetric = x * symmetric + power
        factorial *= k + 3
    return total
