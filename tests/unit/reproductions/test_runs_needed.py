"""How many runs would decide a claim: enough of them do, one less does not, and what cannot be known is not said."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reproductions.claims import Ratio, mean_ratio
from reproductions.runs_needed import MOST, Scatter, would_decide
from tests.unit.reproductions.verdicts import claimed


def detail(found: Ratio, limit: float) -> str:
    row = claimed([found], limit)
    assert row["verdict"] == "unknown"
    return str(row["detail"])


@pytest.mark.parametrize(("count", "distance"), [(4, 0.039), (2, 0.3), (10, 0.11)])
def test_so_many_decide_and_one_less_does_not(count: int, distance: float) -> None:
    scatter = Scatter(0.0674, count)
    needed = scatter.needed(distance)
    assert needed is not None
    assert scatter.with_pairs(needed).half_width() < distance
    assert needed == count + 1 or scatter.with_pairs(needed - 1).half_width() >= distance
    assert scatter.needed(-distance) == needed, "below the limit is as far as above it"
    assert scatter.needed(distance, among=6) == needed, "to pass, each needs its own limits only"
    assert scatter.needed(-distance, among=6) >= needed


def test_four_times_the_runs_halve_the_interval() -> None:
    many = Scatter(0.1, 200)
    assert many.with_pairs(800).half_width() == pytest.approx(many.half_width() / 2, rel=0.01)
    assert many.half_width() == pytest.approx(1.97 * 0.1, rel=0.01)


def test_the_number_is_right_for_runs_that_scatter_so() -> None:
    """The true ratio is 1.04 with a scatter of .135: four pairs hardly ever decide, this number half of the time."""
    noise = np.random.default_rng(8)

    def decided(count: int) -> float:
        drawn = (noise.lognormal(math.log(1.04), 0.135, count) for _ in range(300))
        return float(np.mean([mean_ratio("a / b", ((each, 1.0) for each in some)).low > 1.0 for some in drawn]))

    needed = Scatter(0.135 / 2, 4).needed(math.log(1.04))
    assert needed is not None
    assert decided(4) < 0.15
    assert 0.4 < decided(needed) < 0.6


def test_a_claim_that_is_too_uncertain_says_how_many_would_tell() -> None:
    found = mean_ratio("UNC / COOR", [(1.2, 1.0), (0.9, 1.0), (1.1, 1.0), (0.98, 1.0)])
    needed = found.scatter.needed(math.log(found.ratio))
    assert f"about {needed} pairs of runs instead of 4 would tell" in detail(found, 1.0)


def test_what_many_runs_do_not_decide_is_not_given_a_number() -> None:
    assert Scatter(0.5, 3).needed(0.001) is None
    assert f"more than {MOST} pairs" in would_decide([(Scatter(0.5, 3), 0.001)])
    assert Scatter(0.5, 3).needed(0.0) is None


def test_the_hardest_claim_to_confirm_tells_the_number() -> None:
    easy, hard = (Scatter(0.1, 3), 0.2), (Scatter(0.1, 3), 0.05)
    assert would_decide([easy, hard]) == would_decide([hard]) != would_decide([easy])


def test_what_is_nearer_than_a_bracket_is_decided_by_no_number_of_searches() -> None:
    found = mean_ratio("a / b", [(1.05, 1.0), (1.06, 1.0)])._replace(low=0.95, high=1.15, bracket=0.087)
    assert "no number of searches of this precision would decide" in detail(found, 1.0)
    assert "pairs of runs instead of 2" in detail(found._replace(bracket=0.01), 1.0)


def test_of_a_ratio_without_pairs_no_number_is_said() -> None:
    assert "how many cannot be known from these" in detail(Ratio("a", 2.1, 1.9, 2.3), 2.0)


def test_the_first_claim_that_is_refuted_decides_however_hard_another_one_is() -> None:
    """What stays below its limit fails the check, so that nothing is left to confirm."""
    easy, hard, confirmed_late = (Scatter(0.1, 3), -0.2), (Scatter(0.1, 3), -0.05), (Scatter(0.1, 3), 0.01)
    assert would_decide([easy, hard, confirmed_late]) == would_decide([easy])
    assert would_decide([easy, (None, 0.1)]) == would_decide([easy])
    assert "cannot be known" in would_decide([(None, -0.1), confirmed_late])
    assert would_decide([easy, hard], among=2) == would_decide([easy], among=2) != would_decide([easy])


def test_of_two_claims_the_one_below_its_limit_tells_the_number() -> None:
    """It takes hundreds of pairs to confirm the other one."""
    below = mean_ratio("below", [(0.7, 1.0), (1.05, 1.0), (0.8, 1.0)])
    near = mean_ratio("near", [(1.1, 1.0), (0.95, 1.0), (0.97, 1.0)])
    needed = below.scatter.needed(math.log(below.ratio), among=2)
    row = claimed([near, below], 1.0)
    assert row["verdict"] == "unknown"
    assert near.ratio > 1.0 > below.ratio
    assert f"about {needed} pairs of runs instead of 3 would tell" in str(row["detail"])


def test_searches_decide_if_another_ratio_than_the_one_within_its_bracket_is_below() -> None:
    coarse = mean_ratio("a / b", [(1.05, 1.0), (1.06, 1.0)])._replace(low=0.95, high=1.15, bracket=0.087)
    below = mean_ratio("c / d", [(0.7, 1.0), (1.0, 1.0), (0.8, 1.0)])._replace(bracket=0.087)
    row = claimed([coarse, below], 1.0)
    needed = below.scatter.needed(math.log(below.ratio), among=2)
    assert f"about {needed} pairs of runs instead of 3 would tell" in str(row["detail"])
