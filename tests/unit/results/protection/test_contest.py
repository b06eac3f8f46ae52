"""Who gets the most done at which failure rate: answers that follow by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from results.protection.contest import Contestant, ahead_until, compared_rates, curve, furthest, wins
from results.protection.estimates import Estimate, mean


def known(value: float) -> Estimate:
    """An estimate without doubt."""
    return mean([value] * 3, str(value))


def contestant(name: str, rate: float, cost_s: float, tried_at: float = 0.01) -> Contestant:
    return Contestant(name, known(rate), known(cost_s), tried_at)


def test_half_of_the_time_is_left_where_a_failure_costs_as_much_as_lies_between_two():
    assert contestant("a", 900.0, 10.0).at([0.0, 0.1]) == pytest.approx([900.0, 450.0])


def test_the_cheaper_one_wins_from_where_both_do_the_same():
    """900 (1 + 4 f) = 800 (1 + 10 f) at f = 1/44."""
    found = wins([contestant("fast", 900.0, 10.0), contestant("safe", 800.0, 4.0)])
    assert [(win.winner, win.share) for win in found] == [("fast", 1.0), ("safe", 1.0)]
    assert [found[0].since, found[0].until, found[1].until] == pytest.approx([0.0, 1 / 44, 1 / 10])
    assert found[0].until_between == pytest.approx((1 / 44, 1 / 44))
    assert found[1].until_between is None


def test_the_order_of_the_contestants_does_not_matter():
    three = [contestant("a", 900.0, 30.0), contestant("b", 800.0, 10.0), contestant("c", 600.0, 1.0)]
    orders = [three, three[::-1], [three[1], three[2], three[0]]]
    found = [[(win.winner, win.since, win.until) for win in wins(order)] for order in orders]
    assert found[0] == found[1] == found[2]
    assert [winner for winner, _, _ in found[0]] == ["a", "b"]  # c would win from 200/5200 on, where a is halved


def test_one_that_is_never_the_best_is_in_no_span():
    found = wins([contestant("a", 900.0, 10.0), contestant("worse", 850.0, 10.0), contestant("c", 800.0, 1.0)])
    assert [win.winner for win in found] == ["a", "c"]


def test_one_that_leads_in_both_wins_everywhere():
    (win,) = wins([contestant("a", 900.0, 2.0), contestant("b", 800.0, 10.0)])
    assert (win.winner, win.since, win.until_between) == ("a", 0.0, None)


def test_a_single_one_wins_nothing():
    assert wins([contestant("a", 900.0, 10.0)]) == []


@pytest.mark.parametrize(
    ("one", "other", "until"),
    [
        ((900.0, 10.0), (800.0, 4.0), 1 / 44),
        ((800.0, 4.0), (900.0, 10.0), 0.0),
        ((900.0, 4.0), (800.0, 4.0), math.inf),
        ((800.0, 4.0), (800.0, 4.0), 0.0),
        ((900.0, 0.0), (800.0, 0.0), math.inf),
    ],
)
def test_until_where_one_is_ahead(one, other, until):
    assert float(ahead_until(*one, *other)) == pytest.approx(until)


def test_the_share_is_that_of_the_draws_in_which_it_leads():
    """Rates without failures decide, since none costs anything; of two that are alike each leads in half of them."""
    noise = np.random.default_rng(3).normal(800.0, 20.0, 8).tolist()
    pair = [Contestant(name, mean(noise, name), known(0.0), 0.01) for name in ("a", "b")]
    (win,) = wins(pair)
    assert win.share == pytest.approx(0.5, abs=0.05)


def test_doubt_about_the_rates_is_doubt_about_where_they_meet():
    rates = mean([880.0, 900.0, 920.0], "fast")
    found = wins([Contestant("fast", rates, known(10.0), 0.01), contestant("safe", 800.0, 4.0)])
    low, high = found[0].until_between
    assert low < 1 / 44 < high
    ends = [(rate - 800) / (8000 - 4 * rate) if rate > 800 else 0.0 for rate in rates.limits]
    assert (low, high) == pytest.approx(ends, rel=0.02)


def test_where_perhaps_none_ever_takes_over_the_interval_has_no_upper_limit():
    costs_s = mean([1.0, 10.0, 19.0], "cost")
    found = wins([Contestant("fast", known(900.0), costs_s, 0.01), contestant("safe", 800.0, 4.0)])
    assert found[0].until_between[1] == math.inf
    assert found[0].to_json()["until_high"] is None


def test_a_span_beyond_what_each_was_run_at_says_so():
    found = wins([contestant("fast", 900.0, 10.0, 0.01), contestant("safe", 800.0, 4.0, 0.05)])
    assert [win.tried for win in found] == [True, False]  # it begins at .023, and `fast` was run at .01


def test_nothing_is_said_beyond_where_the_costliest_has_half_of_its_rate_left():
    pair = [contestant("a", 900.0, 10.0), contestant("b", 800.0, 4.0)]
    assert furthest(pair) == pytest.approx(0.1)
    assert compared_rates(pair)[[0, -1]] == pytest.approx([0.0, 0.1])
    assert curve(pair[0], compared_rates(pair))["low"][-1] == pytest.approx(450.0)


def test_failures_without_costs_are_compared_as_far_as_they_were_tried():
    assert furthest([contestant("a", 900.0, 0.0, 0.01), contestant("b", 800.0, 0.0, 0.03)]) == 0.03


def test_if_neither_costs_nor_a_failure_rate_are_known_the_best_without_failures_wins():
    (win,) = wins([contestant("a", 800.0, 0.0, 0.0), contestant("b", 900.0, 0.0, 0.0)])
    assert (win.winner, win.since, win.until, win.tried) == ("b", 0.0, 0.0, False)


def test_an_estimate_without_draws_is_refused():
    few = mean([1.0, 2.0], "few")
    with pytest.raises(ValueError, match="too few"):
        wins([Contestant("a", few, known(1.0), 0.01), contestant("b", 1.0, 1.0)])
