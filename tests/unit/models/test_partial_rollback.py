"""Partial rollback against eq. 10, closed forms, 50 digits, and a process that the test plays event by event."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.errors import BadInput
from models import partial_rollback as partial
from models import utilization as full

loads = st.floats(-12.0, np.log10(50.0)).map(lambda exponent: 10.0**exponent)
shares = st.floats(-6.0, 0.0).map(lambda exponent: 10.0**exponent)


def played(rng, *, rate, recovery, interval, hosts, travel, periods):
    """Durations of consecutive periods of a cluster that loses one of its hosts' equal shares at every failure."""
    now, next_failure, held, durations = 0.0, rng.exponential(1 / rate), np.full(hosts, travel / hosts), []
    began = now
    while len(durations) < periods:
        missing = interval + travel - held.sum()
        if now + missing < next_failure:
            now += missing
            durations.append(now - began)
            began, held = now, np.full(hosts, travel / hosts)
            continue
        held += (next_failure - now) / hosts
        now, recovering = next_failure, True
        while recovering:
            held[rng.integers(hosts)] = 0.0
            held = np.full(hosts, held.sum() / hosts)
            next_failure = now + rng.exponential(1 / rate)
            recovering = next_failure < now + recovery
            now = next_failure if recovering else now + recovery
    return np.array(durations)


@pytest.mark.extended
@pytest.mark.parametrize("hosts", [1, 2, 5, 40])
@pytest.mark.parametrize(("recovery", "travel"), [(0.0, 0.0), (12.0, 0.0), (3.0, 7.0), (2.0, 45.0)])
def test_the_mean_period_is_that_of_the_played_process(hosts, recovery, travel):
    rng = np.random.default_rng(hosts)
    found = played(rng, rate=0.05, recovery=recovery, interval=30.0, hosts=hosts, travel=travel, periods=1500)
    expected = 30.0 / partial.utilization(0.05, 0.0, recovery, 30.0, 1 / hosts, travel, 2)
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(found.size)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(1e-9, 1e4), loads, st.floats(-3.0, 2.0), st.floats(0.0, 30.0), st.floats(0.0, 0.01), st.integers(1, 500)
)
def test_losing_all_is_eq_10(rate, load, beyond, recovery_load, delay_load, depth):
    cost, recovery, delay = load / rate, recovery_load / rate, delay_load / rate
    interval = cost + 10.0**beyond * float(full.optimal_interval(rate, cost))
    eq_10 = full.utilization(rate, cost, recovery, interval, delay, depth)
    assert partial.utilization(rate, cost, recovery, interval, 1.0, delay, depth) == pytest.approx(
        eq_10, rel=1e-11, abs=1e-290
    )
    if eq_10 > 1e-280:
        best = partial.optimal_interval(rate, cost, recovery, 1.0, delay, depth)
        assert best == pytest.approx(full.optimal_interval(rate, cost), rel=1e-11)


def test_losing_nothing_still_pays_recoveries():
    lost = {"lost_share": 0.0, "hop_delay": 0.5, "depth": 9}
    assert partial.utilization(0.02, 4.0, 6.0, 40.0, **lost) == pytest.approx(0.9 * np.exp(-0.12))
    assert partial.optimal_interval(0.02, 4.0, 6.0, **lost) == np.inf


def test_without_failures_it_is_eq_1():
    assert partial.utilization(1e-15, 2.0, 30.0, 8.0, 0.3, 0.5, 4) == pytest.approx(0.75, rel=1e-12)
    assert partial.utilization(0.0, 2.0, 30.0, 8.0, 0.3, 0.5, 4) == 0.75


def test_second_order_by_hand():
    """R = 0: g = x + L f x^2 / 2 + L^2 f (1 - q^2) x^3 / 6; half lost: x + x^2 / 4 + x^3 / 16 at L = 1."""
    x = 1e-3
    assert x / partial.utilization(1.0, 0.0, 0.0, x, 0.5) == pytest.approx(x + x**2 / 4 + x**3 / 16, rel=1e-10)
    # a recovery that never succeeds at once loses x again and again: r = 1 as if all were lost
    assert partial.utilization(1.0, 0.0, 60.0, 2.0, 0.5) == pytest.approx(full.utilization(1.0, 0.0, 60.0, 2.0))


@pytest.mark.extended
@pytest.mark.parametrize("share", [0.9, 0.5, 0.1, 1e-3])
@pytest.mark.parametrize("load", [1e-12, 1e-6, 1e-2, 1.0, 50.0])
def test_the_derivative_at_the_optimum_is_zero_at_50_digits(load, share):
    """The series at 50 digits, with its own differences: its root in T and its U, delta and R included."""
    recovery, travel = 0.2, 0.7
    best = float(partial.optimal_interval(1.0, load, recovery, share, travel, 2))
    with mpmath.workdps(50):
        period = exact_period(recovery, mpmath.mpf(share), travel)

        def gradient(interval):
            return period(interval) - (interval - mpmath.mpf(load)) * mpmath.diff(period, interval)

        root = mpmath.findroot(gradient, mpmath.mpf(best))
        assert abs(best / root - 1) < 1e-11
        utilization = (mpmath.mpf(best) - mpmath.mpf(load)) / period(mpmath.mpf(best))
    assert partial.utilization(1.0, load, recovery, best, share, travel, 2) == pytest.approx(
        float(utilization), rel=1e-11
    )


def exact_period(recovery, share, travel):
    """T_eff as a function of T at L = 1, from the coefficients that the derivation gives."""
    interrupted, q = 1 - mpmath.exp(-mpmath.mpf(recovery)), 1 - share
    terms, product = [], mpmath.mpf(1)
    for k in range(1, 300):
        terms.append(product / mpmath.factorial(k))
        geometric = (1 - interrupted) * q**k / (1 - interrupted * q**k)  # E[q^(k N)]
        product *= 1 - geometric

    def from_zero(x):
        return mpmath.exp(recovery) * mpmath.polyval([0, *terms], x, asc=True)

    return lambda interval: from_zero(interval + travel) - from_zero(mpmath.mpf(travel))


@settings(max_examples=60, deadline=None)
@given(loads, shares, st.floats(0.0, 5.0), st.floats(0.0, 1.0), st.floats(0.3, 3.0).filter(lambda x: abs(x - 1) > 1e-3))
def test_no_other_interval_is_better_and_losing_more_is_never_better(load, share, recovery, travel, other):
    best = partial.optimal_interval(1.0, load, recovery, share, travel, 2)
    assert best > load
    highest = partial.utilization(1.0, load, recovery, best, share, travel, 2)
    assert partial.utilization(1.0, load, recovery, max(load, best * other), share, travel, 2) <= highest
    more, less, none = partial.utilization(
        1.0, load, recovery, best, np.array([min(1.0, 2 * share), share, 0.0]), travel, 2
    )
    assert full.utilization(1.0, load, recovery, best, travel, 2) <= more * (1 + 1e-12)
    assert more <= less * (1 + 1e-12)
    assert less <= none * (1 + 1e-12)


def test_first_order_optimum():
    found = partial.optimal_interval(1e-8, 1.0, 10.0, np.array([1.0, 0.25, 0.01]))
    np.testing.assert_allclose(found, np.sqrt(2 / (1e-8 * np.array([1.0, 0.25, 0.01]))), rtol=2e-4)
    assert partial.optimal_interval(0.1, 0.0, 3.0, 0.5) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-30, 1e30), st.floats(1e-30, 1e30), st.floats(0.0, 1e30), shares, st.floats(0.0, 1.0))
@pytest.mark.filterwarnings("error")
def test_finite_input_never_gives_nan_or_a_warning(rate, cost, recovery, share, delay):
    interval = cost * 3
    assert 0.0 <= partial.utilization(rate, cost, recovery, interval, share, delay / rate, 3) <= 1.0


def test_arrays_give_what_their_elements_give():
    rate, share = np.array([1e-6, 0.05, 2.0])[:, None], np.array([0.0, 0.2, 1.0])
    functions = [
        lambda r, f: partial.utilization(r, 1.0, 3.0, 8.0, f, 0.5, 4),
        lambda r, f: partial.optimal_interval(r, 1.0, 3.0, f, 0.5, 4),
    ]
    for function in functions:
        table = function(rate, share)
        single = [[function(float(r), float(f)) for f in share] for r in rate[:, 0]]
        assert table.shape == (3, 3)
        assert all(isinstance(value, float) for line in single for value in line)
        np.testing.assert_allclose(table, single, rtol=1e-12)


def test_where_no_interval_leaves_a_utilization_it_says_so():
    assert partial.utilization(1.0, 1.0, 0.0, 5.0, 0.5, 1.0, 10_000) == 0.0
    with pytest.raises(BadInput, match="hop_delay"):
        partial.optimal_interval(1.0, 1.0, 0.0, 0.5, 1.0, 10_000)
