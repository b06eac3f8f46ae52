"""The failure laws: their rates, spreads and steady state against hand-derived values, and their bursts."""

from itertools import islice
from math import exp, log

import numpy as np
import pytest

from experiments.errors import BadInput
from models.simulation.laws import Correlated, ExponentialTimes

GAPS = 200_000
SIGMAS = 4.5  # a fixed seed and some 50 comparisons in this file: a chance of 4e-4 that a right law fails
LAWS = [
    ExponentialTimes(),
    Correlated(0.4, 5),
    Correlated(0.4, 5, 3.0),
    Correlated(1.0, 3, 40.0),
    Correlated(0.5, 1, 2.0),
]


def times(law, *, rate, runs, rows, blocks, seed=0):
    return list(islice(law.failures(np.random.default_rng(seed), rate, runs, rows), blocks))


def test_the_gap_that_spans_an_instant_is_twice_as_long():
    """E[X^2] / E[X] = 2 for exponential gaps of mean 1; the instant falls anywhere in the gap alike."""
    rate = 0.5
    before, after = (block[0] * rate for block in times(ExponentialTimes(), rate=rate, runs=GAPS, rows=1, blocks=2))
    assert (before <= 0).all()
    assert (after >= 0).all()
    spanning = after - before
    error = spanning.std() / np.sqrt(GAPS)
    assert spanning.mean() == pytest.approx(2, abs=SIGMAS * error)
    difference = (after + before).std() / np.sqrt(GAPS)
    assert (after + before).mean() == pytest.approx(0.0, abs=SIGMAS * difference)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("rows", [1, 40])
def test_times_ascend_from_before_the_opening_through_all_blocks(law, rows):
    blocks = times(law, rate=0.3, runs=3, rows=rows, blocks=60)
    assert all(block.shape[1] == 3 for block in blocks)
    whole = np.concatenate(blocks)
    assert (whole[0] < 0).all()
    assert (np.diff(whole, axis=0) >= 0).all()
    assert np.isfinite(whole).all()


@pytest.mark.extended
@pytest.mark.parametrize("law", [*LAWS, Correlated(1.0, 3, 1000.0)], ids=str)
def test_the_window_holds_the_failures_of_the_rate_from_its_first_instant_on(law):
    """A steady state: as many in an interval right after the opening as the rate says, however short."""
    runs, rate, window = 4_000, 0.25, 10.0
    blocks = law.failures(np.random.default_rng(6), rate, runs, 100)
    taken = [next(blocks)]
    while taken[-1][-1].min() <= window:
        taken.append(next(blocks))
    whole = np.concatenate(taken)
    distinct = np.diff(whole, axis=0, prepend=-np.inf) > 0
    for end in (0.5, window):
        counts = ((whole > 0) & (whole <= end) & distinct).sum(axis=0)
        error = counts.std() / np.sqrt(runs)
        assert counts.mean() == pytest.approx(rate * end, abs=SIGMAS * error)


def test_failures_that_burst_are_counted_one_by_one_and_at_once_as_one():
    assert Correlated(0.4, 5, 3.0).shock_rate(0.26) == pytest.approx(0.1)  # 1 + 0.4 4 = 2.6 failures a shock
    assert Correlated(0.4, 5, 0.0).shock_rate(0.26) == 0.26


@pytest.mark.parametrize(("law", "seed"), [(Correlated(0.6, 4, 3.0), 8), (Correlated(0.6, 4, 40.0), 9)], ids=str)
def test_a_quiet_time_is_as_likely_as_marshall_and_olkin_make_it(law, seed):
    """A time x holds no failure when no shock before its end has a death in it: exp(-rate (x + mean reach)).

    The mean reach of a burst of k uniform deaths is spread (k - 1) / (k + 1), for x no shorter than the spread.
    """
    runs, shock_rate, quiet = 5_000, 0.04, law.spread
    rate = shock_rate * (1 + law.domain_share * (law.domain_size - 1))
    whole = np.concatenate(times(law, rate=rate, runs=runs, rows=60, blocks=8, seed=seed))
    assert (whole[-1] > quiet).all()
    observed = 1 - ((whole > 0) & (whole <= quiet)).any(axis=0).mean()
    expected = exp(-shock_rate * (quiet + law.domain_share * law.spread * 3 / 5))
    assert observed == pytest.approx(expected, abs=SIGMAS * np.sqrt(expected * (1 - expected) / runs))


def test_a_burst_takes_the_domain_within_its_spread():
    """Shocks far apart: every one of them is a burst of 3 within the spread, at uniform times."""
    whole = np.concatenate(times(Correlated(1.0, 3, 1.0), rate=3e-4, runs=200, rows=30, blocks=12))
    reaches = []
    for column in (np.unique(column[column > 0]) for column in whole.T):
        starts = np.flatnonzero(np.diff(column, prepend=-np.inf) > 1.0)
        sizes = np.diff(starts)
        assert (sizes == 3).mean() > 0.9  # two shocks within a spread have a chance of 2e-4
        reaches += [column[i + 2] - column[i] for i, size in zip(starts, sizes, strict=False) if size == 3]
    assert max(reaches) <= 1.0
    assert np.mean(reaches) == pytest.approx(0.5, abs=SIGMAS * np.std(reaches) / np.sqrt(len(reaches)))


def test_the_size_of_a_block_does_not_change_the_law():
    """Whether a block holds one shock or many: gaps of the same mean and median."""
    law, rate, gaps = Correlated(0.5, 4, 5.0), 0.5, {}
    for rows, blocks in ((1, 4000), (2000, 9)):
        whole = np.concatenate(times(law, rate=rate, runs=4, rows=rows, blocks=blocks, seed=rows))
        found = np.diff(whole, axis=0)
        gaps[rows] = found[(found > 0) & (whole[1:] > 0)]
    error = np.hypot(*(found.std() / np.sqrt(found.size / 4) for found in gaps.values()))  # bursts of 4 at most
    assert gaps[1].mean() == pytest.approx(gaps[2000].mean(), abs=SIGMAS * error)
    shorter = [(found < log(2) / 2).mean() for found in gaps.values()]
    assert shorter[0] == pytest.approx(shorter[1], abs=SIGMAS * np.sqrt(0.25 * sum(4 / g.size for g in gaps.values())))


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        *[("domain_share", (value, 4)) for value in (-0.1, 1.1, np.nan)],
        *[("domain_size", (0.5, value)) for value in (0, 1.5)],
        *[("spread", (0.5, 4, value)) for value in (-1.0, np.nan, np.inf)],
    ],
)
def test_bad_parameters_are_named(field, arguments):
    with pytest.raises(BadInput) as caught:
        Correlated(*arguments)
    assert caught.value.field == field
