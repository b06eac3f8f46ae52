"""The gain of one interval over another: the paper's figures, 50 digits, and the limits."""

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.gain import gain
from models.utilization import daly, optimal_interval, utilization, zhuang

loads = st.floats(-12.0, np.log10(50.0)).map(lambda exponent: 10.0**exponent)  # c L
any_positive = st.floats(1e-300, 1e300)


def exact_gain(rate, cost, interval, other):
    with mpmath.workdps(60):
        rate, cost, interval, other = map(mpmath.mpf, (rate, cost, interval, other))
        spent = mpmath.expm1(rate * other) / mpmath.expm1(rate * interval)
        return (interval - cost) / (other - cost) * spent - 1


def assert_accurate(rate, cost, interval, other):
    found, exact = gain(rate, cost, interval, other), exact_gain(rate, cost, interval, other)
    if exact > 1e300:
        assert found > 1e299
    else:
        assert abs(found - exact) <= 1e-10 * abs(exact)


@settings(max_examples=300, deadline=None)
@given(st.floats(1e-9, 1e4), loads, st.floats(-3.0, 3.0), st.floats(-14.0, 1.0), st.booleans())
def test_digits_of_small_and_large_gains(rate, load, place, step, longer):
    """The other interval is anywhere between 1 / 1000 and 1000 times T* - c; the steps go down to a share of 1e-14."""
    cost = load / rate
    best = float(optimal_interval(rate, cost))
    other = cost + (best - cost) * 10.0**place
    assume(abs(other / best - 1) > 1e-4)
    interval = cost + (other - cost) * (1 + 10.0**step) ** (1 if longer else -1)
    assume(interval != other)
    assume((interval > best) == (other > best))  # on both sides of T* the gain passes zero, where no digit is safe
    assert_accurate(rate, cost, interval, other)


@pytest.mark.parametrize("load", [1e-12, 1e-6, 1e-2, 0.3, 1.0, 7.0, 50.0])
@pytest.mark.parametrize("step", [-1e-4, 1e-5, 1e-4, 1e-3, 0.1, 1.0])
def test_digits_of_what_the_optimum_gains_over_its_neighbours(load, step):
    """Near T* the gain is of second order: 1e-5 away it is about 1e-10 of U, and of less for a small c L."""
    best = float(optimal_interval(0.01, load * 100))
    other = load * 100 + (best - load * 100) * (1 + step)
    assert_accurate(0.01, load * 100, best, other)
    assert gain(0.01, load * 100, best, other) > 0


def test_gain_by_hand():
    assert gain(0.0, 2.0, 8.0, 4.0) == pytest.approx(0.75 / 0.5 - 1)
    by_eq_10 = utilization(0.01, 2.0, 5.0, 30.0, 0.5, 9) / utilization(0.01, 2.0, 5.0, 70.0, 0.5, 9) - 1
    assert gain(0.01, 2.0, 30.0, 70.0) == pytest.approx(by_eq_10, rel=1e-12)
    assert gain(0.01, 2.0, 30.0, 30.0) == 0.0
    assert gain(1.0, 0.0, 1.0, 1e4) == np.inf
    assert gain(1.0, 0.0, 1e4, 1.0) == -1.0


def test_gains_that_the_paper_prints():
    for rate_per_hour, percent in [(0.8475, 18.912), (0.1701, 2.408), (0.1161, 1.403), (0.0606, 0.498)]:
        rate = rate_per_hour / 3600
        assert 100 * gain(rate, 5.0, optimal_interval(rate, 5.0), 1800.0) == pytest.approx(percent, abs=5e-4)
    rate, cost, recovery = 11 / 3600, 120.0, 300.0
    rivals = np.array([daly(rate, cost, recovery), zhuang(rate, cost, recovery)])
    assert (100 * gain(rate, cost, optimal_interval(rate, cost), rivals)).round(1).tolist() == [2.3, 3.7]


@settings(max_examples=200, deadline=None)
@given(any_positive, any_positive, any_positive, any_positive)
@pytest.mark.filterwarnings("error")
def test_finite_input_never_gives_nan_or_a_warning(rate, cost, beyond, other_beyond):
    interval, other = cost + beyond, cost + other_beyond
    assume(min(interval, other) > cost)
    there, back = gain(rate, cost, interval, other), gain(rate, cost, other, interval)
    assert there >= -1
    assert back >= -1
    assert there * back <= 0  # what one gains, the other loses


def test_arrays_give_what_their_elements_give():
    rate, interval = np.array([1e-6, 0.05, 2.0])[:, None], np.array([2.0, 5.0, 50.0])
    table = gain(rate, 1.0, interval, 5.0)
    single = [[gain(float(r), 1.0, float(t), 5.0) for t in interval] for r in rate[:, 0]]
    assert table.shape == (3, 3)
    assert all(isinstance(value, float) for line in single for value in line)
    np.testing.assert_allclose(table, single, rtol=1e-13)
