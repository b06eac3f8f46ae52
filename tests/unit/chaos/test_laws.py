"""The laws of the gaps: of mean 1, of the right shape, stationary from the first moment on, the same everywhere."""

import math
import random
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from chaos.laws import Exponential, Lognormal, Weibull, gamma, gaps, normal
from experiments.faults import FaultProcess

DRAWS = 20_000
LEAST_P = 1e-4  # Kolmogorov and Smirnov, with fixed seeds
LAWS = [
    (Exponential(), stats.expon()),
    (Weibull(0.5), stats.weibull_min(0.5, scale=0.5)),
    (Weibull(3.0), stats.weibull_min(3.0, scale=1 / math.gamma(4 / 3))),
    (Lognormal(0.3), stats.lognorm(0.3, scale=math.exp(-0.045))),
    (Lognormal(1.5), stats.lognorm(1.5, scale=math.exp(-1.125))),
]
IDS = ["exponential", "weibull 0.5", "weibull 3", "lognormal 0.3", "lognormal 1.5"]


@pytest.mark.parametrize(("law", "known"), LAWS, ids=IDS)
def test_gaps_are_of_their_law_and_of_mean_1(law, known):
    stream = random.Random(f"gaps of {law}")
    assert known.mean() == pytest.approx(1.0)
    assert stats.kstest([law.next(stream) for _ in range(DRAWS)], known.cdf).pvalue > LEAST_P


@pytest.mark.parametrize(("law", "known"), LAWS, ids=IDS)
def test_the_first_gap_is_as_if_the_clock_had_always_ticked(law, known):
    """Its density is the chance of a longer gap, over the mean gap of 1."""
    stream = random.Random(f"first gap of {law}")
    ordered = np.sort([law.first(stream) for _ in range(DRAWS)])
    grid = np.append(0.0, np.quantile(ordered, np.linspace(0.001, 1, 400)))
    cdf = np.interp(ordered, grid, integrate.cumulative_simpson(known.sf(grid), x=grid, initial=0.0))
    assert stats.kstest(cdf, "uniform").pvalue > LEAST_P


@pytest.mark.parametrize("order", [1.0, 1.01, 2.0, 6.0])
def test_gamma_numbers_are_of_their_law(order):
    stream = random.Random(f"gamma {order}")
    assert stats.kstest([gamma(stream, order) for _ in range(DRAWS)], stats.gamma(order).cdf).pvalue > LEAST_P


def test_normal_numbers_are_the_inverse_transform_of_the_stream():
    share = random.Random("7").random()
    assert normal(random.Random("7")) == NormalDist().inv_cdf(share)


class Ends(random.Random):
    """A stream of the least or the largest number that `random()` may give."""

    def __init__(self, share):
        super().__init__(0)
        self.share = share

    def random(self):
        return self.share


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([0.0, 1 - 2**-53]), st.floats(0.2, 100.0), st.floats(0.01, 2.5))
def test_gaps_are_finite_at_the_ends_of_the_stream(share, shape, sigma):
    drawn = [law.next(Ends(share)) for law in (Exponential(), Weibull(shape), Lognormal(sigma))]
    assert all(0 <= gap < math.inf for gap in drawn)
    assert 0 <= Lognormal(sigma).first(Ends(share)) < math.inf


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.2, 100.0))
def test_first_gaps_are_finite_for_every_shape(seed, shape):
    assert 0 <= Weibull(shape).first(random.Random(str(seed))) < math.inf


def test_a_process_has_the_law_that_it_names():
    assert gaps(FaultProcess(rate=1)) == Exponential()
    assert gaps(FaultProcess(rate=1, law="weibull", shape=0.7)) == Weibull(0.7)
    assert gaps(FaultProcess(rate=1, law="lognormal", shape=1.2)) == Lognormal(1.2)


def test_weibull_of_shape_1_is_exponential():
    one, other = (law.next(random.Random("5")) for law in (Weibull(1.0), Exponential()))
    assert one == pytest.approx(other, rel=1e-12)
