"""Zipf laws, draws by weight, and dealing."""

import numpy as np
import pytest

from workloads.nexmark.counters import bits
from workloads.popularity import Weighted, dealt, zipf


def test_shares_add_up_and_fall_as_the_law_says():
    shares = zipf(1000, 0.5)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] / shares[99] == pytest.approx(10)
    assert zipf(4, 0).tolist() == [0.25] * 4


def test_things_are_drawn_in_proportion_to_their_shares():
    weighted = Weighted.of(np.array([10, 20, 30]), np.array([5.0, 3.0, 2.0]))
    found = weighted.drawn(bits(1, 2, np.arange(100_000)))
    assert [np.mean(found == thing) for thing in (10, 20, 30)] == pytest.approx([0.5, 0.3, 0.2], abs=0.01)


def test_what_is_dealt_goes_to_every_place_in_each_round():
    places = dealt(7, 1, 103, 8)
    rounds = places[:96].reshape(12, 8)
    assert (np.sort(rounds, axis=1) == np.arange(8)).all()
    assert len(set(places[96:].tolist())) == 7
    assert len({tuple(each) for each in rounds.tolist()}) > 6
    assert not np.array_equal(places, dealt(8, 1, 103, 8))


def test_each_part_of_a_weight_counts_once():
    found = Weighted(np.array([5, 6]), np.array([1, 2])).drawn(bits(1, 2, np.arange(1000)))
    assert 400 < np.count_nonzero(found == 5) < 600
