"""What differs by rounding only is equal."""

import numpy as np

from models.replication.ties import descending, first_highest, rises


def test_the_first_of_the_highest_is_chosen():
    assert first_highest(np.array([0.1, 0.3, 0.1 + 0.2])) == 1
    assert first_highest(np.array([0.0, 0.0])) == 0
    assert first_highest(np.array([1e-20, 2e-20])) == 1


def test_the_order_of_what_is_equal_is_kept():
    assert descending(np.array([0.2, 0.3, 0.1 + 0.2, 0.4])).tolist() == [3, 1, 2, 0]
    assert descending(np.array([1e-20, 3e-20, 2e-20])).tolist() == [1, 2, 0]
    assert descending(np.zeros(3)).tolist() == [0, 1, 2]
    assert descending(np.zeros(0)).tolist() == []


def test_only_more_than_rounding_is_a_rise():
    assert rises(0.3, np.array([0.1 + 0.2, 0.3 + 1e-9, 0.2])).tolist() == [False, True, False]
    assert rises(0.0, np.array([0.0, 1e-300])).tolist() == [False, True]
