"""Drawing from resampled measurements: all ways draw the same, and in time that grows with what is drawn from."""

from __future__ import annotations

import time

import numpy as np
import pytest

from models.replay.draws import Pool, draw, draw_each


def test_many_draws_are_those_that_single_ones_are():
    weights = np.random.default_rng(1).exponential(size=(30, 7))
    many, one = np.random.default_rng(2), np.random.default_rng(2)
    found = draw_each(many, weights, 50)
    np.testing.assert_array_equal(found, np.stack([draw(one, weights) for _ in range(50)], axis=1))
    assert draw_each(many, weights, 0).shape == (30, 0)


@pytest.mark.parametrize("but", [None, 0, 3, 6])
def test_a_pool_draws_as_if_the_value_that_is_left_out_were_not_there(but):
    weights = np.random.default_rng(1).exponential(size=(2000, 7))
    left = [index for index in range(7) if index != but]
    found = Pool(weights).draw(np.random.default_rng(2), but)
    np.testing.assert_array_equal(found, np.array(left)[draw(np.random.default_rng(2), weights[:, left])])


def test_to_leave_out_each_of_many_values_once_takes_no_copy_of_the_others():
    """Copies and sums for each of them took 4 s."""
    rng = np.random.default_rng(3)
    pool, started = Pool(rng.exponential(size=(1000, 600))), time.process_time()
    for but in range(600):
        pool.draw(rng, but)
    assert time.process_time() - started < 2
