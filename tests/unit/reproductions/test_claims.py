"""Ratios and their limits, and what a claim about them comes to."""

import numpy as np
import pandas as pd
import pytest

from reproductions.claims import Ratio, mean_ratio, paired_ratio, samples
from results.checks.rules import NotEnough
from tests.unit.reproductions.verdicts import claimed


def verdict(found: list[Ratio], limit: float) -> str | None:
    return claimed(found, limit)["verdict"]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(2.0, 3.0, "pass"), (1.9, 3.0, "unknown"), (1.0, 1.99, "fail"), (1.0, 2.0, "unknown"), (np.nan, np.nan, "fail")],
)
def test_a_ratio_is_held_against_its_limit_with_its_uncertainty(low, high, expected):
    assert verdict([Ratio("a / b", (low * high) ** 0.5, low, high)], 2.0) == expected


def test_one_ratio_that_is_refuted_decides():
    assert verdict([Ratio("open", 2, 1, 4), Ratio("refuted", 1.5, 1.4, 1.6)], 2.0) == "fail"


def test_one_of_many_ratios_is_refuted_only_by_its_share_of_the_doubt():
    low = mean_ratio("low", [(0.96, 1.0), (0.935, 1.0), (0.975, 1.0), (0.95, 1.0)])
    assert low.high < 1.0
    sound = Ratio("sound", 2.0, 1.9, 2.1)
    assert verdict([low], 1.0) == verdict([low, sound], 1.0) == "fail"
    row = claimed([low, *[sound] * 5], 1.0)
    assert row["verdict"] == "unknown"
    assert "one of the 6 ratios is below the limit with 99.2 % confidence; about 5 pairs of runs" in row["detail"]


def test_of_72_sound_ratios_hardly_any_family_fails():
    """If each had its own 5 %, five in six families would fail."""
    logs = np.random.default_rng(12).normal(0.0, 0.1, (100, 72, 4))
    failed = 0
    for family in logs:
        found = [mean_ratio("a / b", [(over, 1.0) for over in np.exp(pairs)]) for pairs in family]
        failed += any(each.is_below(1.0, len(found)) for each in found)
    assert failed <= 8


def test_without_a_ratio_there_is_no_verdict():
    assert verdict([], 2.0) == "unknown"


ONE_RUN, MORE, REFUTED = Ratio("a", 9, 8, 10, True), Ratio("b", 9, 8, 10), Ratio("c", 1, 0.9, 1.1)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([ONE_RUN, MORE], "unknown"),
        ([MORE], "pass"),
        ([REFUTED, ONE_RUN], "fail"),
        ([REFUTED._replace(of_one_run=True), MORE], "unknown"),
        ([REFUTED, REFUTED._replace(of_one_run=True)], "fail"),
    ],
)
def test_nothing_is_decided_by_single_runs(found, expected):
    assert verdict(found, 2.0) == expected


def test_the_samples_of_a_run_are_told_by_their_number_mean_and_deviation():
    assert samples(pd.Series([1.0, 3.0])) == {"samples": 2, "mean": 2.0, "std": pytest.approx(2**0.5)}
    assert np.isnan(samples(pd.Series([1.0]))["std"])
    assert np.isnan(list(samples(pd.Series([], dtype=float)).values())).all()


def test_limits_by_how_ratios_differ():
    found = mean_ratio("a / b", [(1.0, 1.0), (4.0, 1.0)])
    half = 12.7062 * np.log(4) / 2  # t of one degree of freedom; half the distance is the standard error of two
    assert (found.ratio, found.low) == pytest.approx((2.0, 2 * np.exp(-half)), rel=1e-4)
    with pytest.raises(NotEnough, match="one pair"):
        mean_ratio("a / b", [(1.0, 1.0)])
    with pytest.raises(NotEnough, match="no pair"):
        mean_ratio("a / b", [])
    for pair in ((0.0, 1.0), (1.0, 0.0)):
        with pytest.raises(NotEnough, match="0 or missing"):
            mean_ratio("a / b", [(1.0, 1.0), pair])


def test_pairs_are_rows_that_are_alike():
    rows = pd.DataFrame({"replicate": [1, 1, 2, 2], "mode": ["b", "a", "a", "b"], "took_s": [4.0, 1.0, 3.0, 3.0]})
    found = paired_ratio("b / a", rows, "took_s", "mode", "b", "a")
    assert found == mean_ratio("b / a", [(4.0, 1.0), (3.0, 3.0)])
    with pytest.raises(NotEnough, match="b / a: took_s is missing in at least one run of a pair"):
        paired_ratio("b / a", rows.iloc[1:], "took_s", "mode", "b", "a")
    with pytest.raises(NotEnough, match="c / a"):
        paired_ratio("c / a", rows, "took_s", "mode", "c", "a")


def test_limits_hold_the_truth_as_often_as_they_say():
    noise = np.random.default_rng(5)
    hits = 0
    for _ in range(400):
        pairs = noise.lognormal(np.log([[2.0, 1.0]]), 0.3, (4, 2))
        found = mean_ratio("a / b", [tuple(pair) for pair in pairs])
        hits += found.low <= 2.0 <= found.high
    assert 0.92 < hits / 400 < 0.98
