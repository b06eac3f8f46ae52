"""The next of few measurements lies between the limits as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.errors import BadInput
from models.next_of_few import ENOUGH, draw_next


def held(law, count: int, rounds: int = 400) -> float:
    """In which share of the rounds the next one lies within 95 % of what is drawn by `count` that were seen."""
    rng, inside = np.random.default_rng([5, count]), 0
    for _ in range(rounds):
        *seen, following = law(rng, count + 1)
        low, high = np.percentile(draw_next(rng, seen, 2000), (2.5, 97.5))
        inside += low <= following <= high
    return inside / rounds


@pytest.mark.parametrize("count", [2, 3, 6, 20])
def test_by_few_normal_measurements_the_limits_hold_the_next_one(count):
    """Drawn from those seen, they would hold it in a third of the cases by two, and in half of them by three."""
    assert held(lambda rng, number: rng.normal(10.0, 1.0, number), count) == pytest.approx(0.95, abs=0.035)


def test_by_many_they_hold_it_whatever_its_law_is():
    def of_two_kinds(rng, number):
        return np.where(rng.random(number) < 0.9, 2.0, 40.0) * rng.normal(1.0, 0.05, number)

    assert held(of_two_kinds, 60) > 0.9


@pytest.mark.parametrize("count", [ENOUGH, 41, 60, 81])
def test_by_many_as_they_are_the_limits_hold_what_they_say(count):
    """Percentiles of those seen hold 90 % by 41."""
    assert held(lambda rng, number: rng.exponential(10.0, number), count, 2000) == pytest.approx(0.95, abs=0.015)


def test_many_reach_from_the_least_to_the_greatest():
    seen = 100.0 + np.arange(ENOUGH)
    drawn = draw_next(np.random.default_rng(1), seen, 5000)
    assert (drawn.min(), drawn.max()) == (100.0, 99.0 + ENOUGH)
    assert np.mean((drawn == drawn.min()) | (drawn == drawn.max())) == pytest.approx(2 / (ENOUGH + 1), abs=0.01)


def test_equal_measurements_are_drawn_again_and_nothing_is_below_zero():
    assert draw_next(np.random.default_rng(1), [0.2] * 3, 100) == pytest.approx(np.full(100, 0.2))
    assert draw_next(np.random.default_rng(1), [0.1, 9.0], 1000).min() == 0.0


def test_one_measurement_says_nothing_of_the_next():
    assert all(math.isnan(each) for each in draw_next(np.random.default_rng(1), [4.0], 3))
    with pytest.raises(ValueError, match="no measurement"):
        draw_next(np.random.default_rng(1), [], 3)
    with pytest.raises(BadInput, match="0 or more"):
        draw_next(np.random.default_rng(1), [1.0, -1.0], 3)
