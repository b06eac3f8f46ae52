"""The extent of a log with opens only: against windows that are drawn one by one, and against the paper's figure."""

import numpy as np
import pytest
from scipy import stats

from experiments.errors import BadInput
from models.log_extent import extent, oldest_window, settles_after, windows_older_than
from models.open_windows import open_windows

K, W = 100_000, 10


def test_all_open_windows_are_older_than_nothing():
    assert windows_older_than(K, W, 0) == pytest.approx(K * (W - 1) / W)
    assert windows_older_than(K, W, 0) == pytest.approx(open_windows(K, W, 1e9))


def test_the_paper_s_longest_extent_lies_within_it():
    """The lab measured 463,000 to 591,000 at 12 moments."""
    assert extent(K, W, 0.01) < 500_000 < extent(K, W, 0.5)
    assert extent(K, W, 0.01) < 463_000 < 591_000 < extent(K, W, 0.999)


def oldest_age(random, items, size):
    """In records, of one drawn stream that began long ago."""
    length = 60 * items
    arrivals = np.sort(random.uniform(0, length, random.poisson(length)))
    of_item = random.integers(0, items, len(arrivals))
    by_item = [arrivals[of_item == item] for item in range(items)]
    return length - min(mine[len(mine) - len(mine) % size] for mine in by_item if len(mine) % size)


@pytest.mark.extended
def test_windows_that_are_drawn_have_the_age_of_the_model():
    random, items, size = np.random.default_rng(5), 500, 4
    oldest = np.array([oldest_age(random, items, size) for _ in range(300)])
    for probability in (0.1, 0.5, 0.9):
        share = np.mean(oldest <= oldest_window(items, size, probability))
        assert share == pytest.approx(probability, abs=0.06)


@pytest.mark.parametrize("size", [2, 10, 1000])
def test_a_log_settles_when_each_remainder_is_as_likely_as_the_others(size):
    records_of_item = settles_after(1, size)
    numbers = np.arange(stats.poisson(records_of_item).isf(1e-12) + 1, dtype=int)
    shares = size * np.bincount(numbers % size, stats.poisson(records_of_item).pmf(numbers))
    assert 0.004 < np.abs(shares - 1).max() < 0.0101


def test_no_window_may_be_open():
    assert oldest_window(1, 2, 0.5) == 0
    assert oldest_window(1, 2, 0.999) > 0


@pytest.mark.parametrize(("items", "size", "probability"), [(0, 10, 0.5), (10, 1, 0.5), (10, 10, 0.0), (10, 10, 1.0)])
def test_values_without_a_meaning(items, size, probability):
    with pytest.raises(BadInput):
        oldest_window(items, size, probability)


@pytest.mark.parametrize(("items", "size"), [(0, 10), (10, 1)])
def test_what_never_settles(items, size):
    with pytest.raises(BadInput):
        settles_after(items, size)
