"""Changes in a history: found where they are, and hardly ever where there are none."""

import math

import numpy as np
import pytest

from results.regression.change_points import FALSE_CHANGE, FEWEST_RUNS, SHORTEST, change_points


def history(*levels, noise=0.05, seed=1):
    """Values at each of the levels `(runs, level)` in turn."""
    generator = np.random.default_rng(seed)
    return np.concatenate([level + noise * generator.normal(size=runs) for runs, level in levels])


def test_each_change_is_found_with_its_levels():
    found = change_points(history((40, 1.0), (30, 1.15), (50, 0.9)), minimum=0.05)
    assert [change.place for change in found] == pytest.approx([40, 70], abs=2)
    assert [change.before for change in found] == pytest.approx([1.0, 1.15], abs=0.03)
    assert [change.after for change in found] == pytest.approx([1.15, 0.9], abs=0.03)
    assert all(change.p_value <= FALSE_CHANGE for change in found)


def test_a_change_is_found_five_runs_after_it():
    for seed in range(10):
        found = change_points(history((40, 1.0), (5, 1.2), noise=0.02, seed=seed), minimum=0.05)
        assert [change.place for change in found] == [40], seed


def test_a_change_below_the_minimum_does_not_count():
    assert change_points(history((40, 1.0), (40, 1.03), noise=0.01), minimum=0.05) == []


def test_one_wild_run_is_no_change():
    values = history((60, 1.0))
    values[30] = 50.0
    assert change_points(values, minimum=0.05) == []


@pytest.mark.parametrize("values", [[], [1.0], list(range(2 * SHORTEST - 1)), [2.0] * 50])
def test_short_and_constant_histories_have_none(values):
    assert change_points(np.array(values, dtype=float), minimum=0.05) == []


def test_a_perfect_step_is_found_as_soon_as_there_are_runs_enough_to_tell_it_from_chance():
    def step(runs):
        return change_points(np.r_[np.linspace(1.0, 1.1, runs // 2), np.linspace(2.0, 2.1, runs - runs // 2)], 0.05)

    assert step(FEWEST_RUNS - 1) == []
    assert [change.place for change in step(FEWEST_RUNS)] == [FEWEST_RUNS // 2]
    alike = {10: 2 / math.comb(10, 5), 11: 4 / math.comb(11, 5)}  # share of the orders; of 11 runs, 5 and 6 are alike
    assert min(alike.values()) > FALSE_CHANGE


def test_hardly_any_is_found_where_nothing_changed():
    found = [change_points(history((100, 1.0), seed=seed), minimum=0.0) for seed in range(1000)]
    assert sum(map(bool, found)) <= 12  # five in a thousand are expected
