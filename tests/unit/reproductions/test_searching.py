"""Searches end where functions of which the place is known have it."""

import numpy as np
import pytest

from reproductions.searching import crossing, highest


def test_the_maximum_of_each_of_many_functions_is_found_at_once():
    places = np.array([0.1, 3.0, 700.0])
    found = highest(lambda x: -np.abs(x - places), np.zeros(3), 1000.0)
    assert found == pytest.approx(places, rel=1e-12)


def test_a_flat_maximum_is_found_within_what_rounding_leaves():
    assert highest(lambda x: 1.0 - 1e-3 * (x - 46.0) ** 2, 5.0, 300.0) == pytest.approx(46.0, abs=1e-5)


def test_a_maximum_at_an_end_is_that_end():
    assert highest(lambda x: x, 2.0, 3.0) == pytest.approx(3.0)


def test_a_root_is_found_to_the_last_digits():
    assert crossing(lambda x: 2.0 - x * x, 0.0, 2.0) == pytest.approx(np.sqrt(2.0), rel=1e-15)
