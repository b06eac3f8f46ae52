"""Means and their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from results.protection import estimates
from results.protection.estimates import mean, with_shared


def test_no_value_has_no_mean_and_two_have_no_interval():
    assert mean([], "a") is None
    assert mean([1.0, 3.0], "a").to_json() == {"value": 2.0, "low": None, "high": None, "count": 2}


def test_the_interval_is_about_as_wide_as_student_s():
    sample = np.random.default_rng(1).normal(100.0, 5.0, 40).tolist()
    low, high = mean(sample, "a").limits
    expected = stats.t.interval(0.95, 39, np.mean(sample), stats.sem(sample))
    assert (low, high) == pytest.approx(expected, abs=0.3)


def test_values_that_agree_leave_nothing_open():
    assert mean([4.0] * 3, "a").limits == (4.0, 4.0)


def test_no_draw_is_negative():
    assert mean([0.0, 0.0, 9.0], "a").limits[0] == 0.0


def test_no_draw_of_a_share_is_above_1():
    assert mean([1.0, 1.0, 0.9], "a").limits[1] > 1.0
    assert mean([1.0, 1.0, 0.9], "a", most=1.0).limits[1] == 1.0


def test_the_same_values_give_the_same_draws_and_those_of_two_means_are_independent():
    values = [1.0, 2.0, 4.0, 8.0]
    first, again, other = (mean(values, name).draws for name in ("a", "a", "b"))
    assert (first == again).all()
    assert abs(np.corrcoef(first, other)[0, 1]) < 0.1


def covered(count: int, samples: int = 1000) -> float:
    """In which share of samples the interval holds the true mean."""
    drawn = np.random.default_rng(7).normal(50.0, 5.0, (samples, count)).tolist()
    limits = [mean(sample, str(number)).limits for number, sample in enumerate(drawn)]
    return float(np.mean([low <= 50.0 <= high for low, high in limits]))


@pytest.mark.parametrize("count", [3, 6])
def test_the_interval_of_few_values_holds_the_true_mean_as_often_as_it_says(count, monkeypatch):
    monkeypatch.setattr(estimates, "DRAWS", 500)
    assert 0.92 <= covered(count) <= 0.97


def test_a_plain_bootstrap_of_few_values_does_not(monkeypatch):
    monkeypatch.setattr(estimates, "DRAWS", 500)
    monkeypatch.setattr(estimates, "_stretch", lambda count: 1.0)
    assert covered(4) < 0.87


RUNS, FAULTS = 6, 12


def test_the_interval_of_what_runs_share_holds_the_true_mean_as_often_as_it_says(monkeypatch):
    """Of each run only the sum over its faults is known. To take its parts for so many values would be too sure."""
    monkeypatch.setattr(estimates, "DRAWS", 500)
    drawn = np.random.default_rng(7).normal(50.0, 20.0, (500, RUNS, FAULTS)).sum(axis=2)
    nothing, both = [0.0] * (RUNS * FAULTS), []
    for number, totals_s in enumerate(drawn):
        shared = with_shared(mean(nothing, "own"), [(total_s, FAULTS) for total_s in totals_s], str(number))
        parts = mean([total_s / FAULTS for total_s in totals_s for _ in range(FAULTS)], str(number))
        both.append([low <= 50.0 <= high for low, high in (shared.limits, parts.limits)])
    as_sums, as_parts = np.mean(both, axis=0)
    assert 0.92 <= as_sums <= 0.98
    assert as_parts < 0.6


def test_where_nothing_is_shared_nothing_changes():
    own = mean([1.0, 2.0, 4.0], "own")
    assert with_shared(own, [(0.0, 3)], "shared") is own
    assert with_shared(None, [], "shared") is None
