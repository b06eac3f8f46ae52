"""Verdicts: what is worse, better, the same, or unknown, and how often they are wrong."""

import math

import numpy as np
import pytest

from results.regression import judging
from results.regression.change import Change
from results.regression.judging import Pair, holm, judge, overall
from results.summary.metrics import METRICS
from tests.unit.results.regression import simulated_nights
from tests.unit.results.regression.simulated_nights import alarms, found_after, found_at

STEADY = 100 + np.array([0.0, 1, -1, 2, -2, 0.5, -0.5, 1.5, -1.5, 0.2])


def pair(candidates, baseline=STEADY, name="checkpoint_s"):
    return Pair(METRICS[name], ((np.array(candidates, dtype=float), np.array(baseline, dtype=float)),))


def judged(*pairs):
    return [found.verdict for found in judge(pairs)]


def test_what_takes_longer_is_worse_and_what_does_more_is_better():
    more = STEADY[:5] * 1.3
    assert judged(pair(more), pair(more, name="service_rate")) == [Change.WORSE, Change.BETTER]
    less = STEADY[:5] / 1.3
    assert judged(pair(less), pair(less, name="service_rate")) == [Change.BETTER, Change.WORSE]


def test_the_effect_is_the_ratio_of_medians_within_its_interval():
    (found,) = judge([pair(STEADY[:5] * 1.3)])
    assert found.effect == pytest.approx(1.3 * np.median(STEADY[:5]) / np.median(STEADY) - 1, rel=1e-4)
    assert 0.1 < found.low < found.effect < found.high < 0.5
    assert (found.candidate_median, found.baseline_median) == (np.median(STEADY[:5] * 1.3), np.median(STEADY))
    assert (found.candidates, found.baseline) == (5, 10)
    assert found.p_value <= judging.FALSE_ALARM


def test_the_interval_leaves_out_no_change_just_when_the_p_value_does():
    generator = np.random.default_rng(1)
    shifts = np.linspace(1.0, 1.4, 25)
    pairs = [pair(shift * np.exp(0.04 * generator.normal(size=5)), np.exp(0.04 * generator.normal(size=12)))
             for shift in shifts]  # fmt: skip
    found = judge(pairs)
    significant = [one.p_value <= judging.FALSE_ALARM for one in found]
    assert significant == [one.low > 0 or one.high < 0 for one in found]
    assert 3 < sum(significant) < 22


def test_a_certain_change_below_the_minimum_effect_is_the_same():
    assert judged(pair(STEADY[:5] / 20 + 98, STEADY / 20 + 95)) == [Change.SAME]


def test_steady_runs_are_the_same():
    assert judged(pair(STEADY[:5]), pair(STEADY[:5], name="utilization")) == [Change.SAME] * 2


def test_noise_that_hides_a_change_is_unknown():
    (found,) = judge([pair([80, 140, 100, 60, 170], [100, 150, 60, 90, 130, 70, 110])])
    assert found.verdict is Change.UNKNOWN
    assert found.why == "noise hides whether it changed"


@pytest.mark.parametrize(("candidates", "baseline"), [(2, 10), (5, 4), (0, 10), (5, 0), (0, 0)])
def test_too_few_runs_are_unknown_however_far_apart(candidates, baseline):
    (found,) = judge([pair(STEADY[:candidates] * 9, STEADY[:baseline])])
    assert found.verdict is Change.UNKNOWN
    assert "too few runs" in found.why
    assert found.effect is found.p_value is None


def test_a_few_runs_are_enough_for_a_great_change():
    assert judged(pair(STEADY[:3] * 1.5, STEADY[:5])) == [Change.WORSE]


def test_distances_to_the_model_are_compared_as_differences():
    near, far = np.linspace(0, 0.02, 10), np.linspace(0.08, 0.1, 5)
    (found,) = judge([pair(far, near, "model_error")])
    assert found.verdict is Change.WORSE
    assert found.effect == pytest.approx(0.09 - 0.01)
    assert judged(pair(near[:5] / 2, near / 2, "model_error")) == [Change.SAME]


def test_a_ratio_of_values_below_the_resolution_is_no_change():
    assert judged(pair([0.004] * 5, [0.0] * 10, "catch_up_s")) == [Change.SAME]


ZEROS = [0] * 10


@pytest.mark.parametrize(
    ("candidates", "baseline", "verdict"),
    [
        ([0, 0, 0, 0, 0], ZEROS, Change.SAME),
        ([0, 0, 1, 0, 0], ZEROS, Change.WORSE),
        ([50, 0, 9, 20, 0], [0, 30, 0, 90, 10, 60, 0, 40, 0, 20], Change.SAME),
        ([95, 96, 97, 98, 99], [0, 30, 0, 90, 10, 60, 0, 40, 0, 20], Change.WORSE),
        ([0, 0, 0, 0, 0], [5, 30, 8, 90, 10, 60, 7, 40, 6, 20], Change.BETTER),
        (
            [95, 96, 97, 98, 30],
            [0, 30, 0, 90, 10, 60, 0, 40, 0, 20],
            Change.WORSE,
        ),  # 1 of 273, in either direction 1 of 137
        ([95, 96, 97, 20, 30], [0, 30, 0, 90, 10, 60, 0, 40, 0, 20], Change.UNKNOWN),  # 2 of 46
        ([0, 0, 0, 0, 9], [5, 30, 8, 90, 10, 60, 7, 40, 6, 20], Change.UNKNOWN),
        ([95, 96, 97], [0, 30, 0, 90, 10], Change.UNKNOWN),  # 1 of 28 sets of runs does as well by chance
        ([0, 0], ZEROS, Change.UNKNOWN),
        ([900] * 5, [0] * 19 + [1000], Change.WORSE),  # 6 of 53,130
        ([900, 0, 900, 900, 900], [0] * 19 + [1000], Change.WORSE),  # 1 of 506
        ([900, 0, 900, 0, 900], [0] * 19 + [1000], Change.UNKNOWN),  # 1 of 62
        ([900, 0, 900, 0, 0], [0] * 19 + [1000], Change.SAME),  # 1 of 11
        ([900, 900, 900, 900, 1100], [0] * 19 + [1000], Change.WORSE),
        ([0] * 5, [900] * 19 + [0], Change.UNKNOWN),
        ([0, 900, 0, 0, 0], [0] * 19 + [1000], Change.SAME),
    ],
)
def test_counts_that_were_zero_stay_zero(candidates, baseline, verdict):
    assert judged(pair(candidates, baseline, "lost")) == [verdict]


@pytest.mark.parametrize(
    ("candidates", "verdict"),
    [
        ([0, 4600, 0, 0, 0], Change.UNKNOWN),  # 1 of 5
        ([0, 4600, 0, 9000, 0], Change.UNKNOWN),  # 1 of 30
        ([100, 4600, 200, 9000, 0], Change.WORSE),  # 1 of 2,530
        ([0, 0, 0, 0, 0], Change.SAME),
    ],
)
def test_duplicates_that_chance_makes_are_worse_only_in_many_runs(candidates, verdict):
    assert judged(pair(candidates, ZEROS, "duplicated")) == [verdict]


def test_strata_take_the_difference_between_seeds_out():
    one, other = STEADY, STEADY * 3
    mixed = Pair(METRICS["checkpoint_s"], ((np.r_[one[:5], other[:5]] * 1.15, np.r_[one, other]),))
    apart = Pair(METRICS["checkpoint_s"], ((one[:5] * 1.15, one), (other[:5] * 1.15, other)))
    assert judged(mixed) == [Change.UNKNOWN]
    assert judged(apart) == [Change.WORSE]


def test_counts_beyond_those_before_are_not_the_same_for_a_median_of_zero():
    assert judged(pair([0, 0, 0, 5000, 9000], [0] * 19 + [1], "lost")) == [Change.UNKNOWN]


def test_counts_beyond_all_before_are_worse_as_rarely_as_they_say():
    """By the exact rule on random orders of heavy-tailed counts: 4 of 5 beyond 20 others, 1 of 2,530."""
    generator = np.random.default_rng(8)
    counts = np.floor(generator.lognormal(4, 2, (5_000, 25)))
    beyond = [judging._of_counts(pair(runs[:5], runs[5:], "lost")).p_value for runs in counts]
    assert judging._of_counts(pair([9, 9, 9, 9, 0], [1] * 20, "lost")).p_value == pytest.approx(2 / 2530)
    for level in (0.01, 0.1, 0.5):
        assert np.mean(np.array(beyond) <= level) <= level / 2 + 0.002


def test_runs_above_zero_are_more_as_rarely_as_they_say():
    """On random orders of counts that are often zero, the three tests together give the false alarms allowed."""
    (found,) = judge([pair([900] * 5, [0] * 19 + [1000], "lost")])
    assert (found.p_value, found.effect) == (pytest.approx(4 * 6 / 53_130), 900)
    generator = np.random.default_rng(10)
    lossy = generator.random((5_000, 25)) < generator.random((5_000, 1))
    counts = generator.integers(1, 1000, lossy.shape) * lossy
    chances = [judging._of_counts(pair(runs[:5], runs[5:], "lost")) for runs in counts if runs[5:].any()]
    for level in (0.01, 0.1, 0.5):
        assert np.mean([one.p_value <= level for one in chances]) <= level + 0.002
    is_within = [one.p_same == 0 for one in chances]
    assert np.mean(is_within) > 0.3


def test_runs_above_zero_are_counted_within_their_strata():
    """Each of two seeds loses in 3 of 5 runs instead of 1 of 20: .016 of one seed, much less of both."""
    stratum = (np.array([900.0, 0, 900, 0, 900]), np.array([0.0] * 19 + [1000]))
    assert judged(Pair(METRICS["lost"], (stratum,))) == [Change.UNKNOWN]
    assert judged(Pair(METRICS["lost"], (stratum, stratum))) == [Change.WORSE]


def test_counts_are_compared_within_their_strata():
    """One seed that has results twice is not held against others that never have: p = .00087 if all were pooled."""
    loud, quiet = (np.full(5, 9.0), np.ones(5)), (np.zeros(5), np.zeros(20))
    found = judging._of_counts(Pair(METRICS["lost"], (loud, *[quiet] * 4)))
    assert found.p_value >= 2 / math.comb(10, 5)
    generator = np.random.default_rng(9)
    chance = np.zeros(20_000)
    for candidates, baseline in [(5, 5), *[(5, 20)] * 4]:
        runs = generator.random((len(chance), candidates + baseline))
        chance += (runs[:, :candidates] > runs[:, candidates:].max(axis=1, keepdims=True)).sum(axis=1)
    assert found.p_value / 2 == pytest.approx(np.mean(chance >= 5), abs=0.005)


def test_counts_can_rise_under_one_seed_below_those_of_another():
    rising, high = (np.full(5, 9.0), np.ones(20)), (np.full(5, 50.0), np.full(20, 90.0))
    assert judged(Pair(METRICS["lost"], (rising, high))) == [Change.WORSE]


def test_a_stratum_that_lacks_a_side_does_not_count():
    both = (STEADY[:5], STEADY)
    found = judge([Pair(METRICS["checkpoint_s"], (both, (STEADY * 9, np.empty(0)), (np.empty(0), STEADY)))])
    assert found == judge([Pair(METRICS["checkpoint_s"], (both,))])


def test_holm_corrects_for_how_many_are_left(monkeypatch):
    monkeypatch.setattr(judging, "FALSE_ALARM", 0.05)
    corrected = holm([0.03, 0.01, 0.6, 0.013])
    assert [p for p, _ in corrected] == pytest.approx([0.06, 0.04, 0.6, 0.04])
    assert [level for _, level in corrected] == pytest.approx([0.05 / 2, 0.05 / 4, 0.05 / 2, 0.05 / 3])
    assert holm([]) == []
    assert [p for p, _ in holm([0.9, 0.8])] == [1.0, 1.0]


def test_more_metrics_need_more_evidence():
    doubtful = pair([109, 113, 110, 117, 111], [100, 104, 97, 99, 102, 95, 101, 98])
    assert judged(doubtful) == [Change.WORSE]
    assert judged(doubtful, *[pair(STEADY[:5])] * 60)[0] is not Change.WORSE


@pytest.mark.extended
def test_a_slowdown_is_found_among_any_number_of_metrics():
    """Of 700 judged together each is held against .01 / 700, less than one of the usual draws."""
    generator = np.random.default_rng(1)
    usual = [
        pair(np.exp(0.02 * generator.normal(size=5)), np.exp(0.02 * generator.normal(size=20))) for _ in range(699)
    ]
    slow = pair(1.3 * np.exp(0.02 * generator.normal(size=5)), np.exp(0.02 * generator.normal(size=20)))
    found = judge([slow, *usual])
    assert found[0].verdict is Change.WORSE
    assert 0 < found[0].low < found[0].effect < found[0].high
    assert Change.WORSE not in [one.verdict for one in found[1:]]


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        ([Change.SAME, Change.WORSE, Change.UNKNOWN, Change.BETTER], Change.WORSE),
        ([Change.SAME, Change.UNKNOWN, Change.BETTER], Change.UNKNOWN),
        ([Change.SAME, Change.BETTER], Change.BETTER),
        ([Change.SAME], Change.SAME),
        ([], Change.UNKNOWN),
    ],
)
def test_the_verdict_of_all_is_never_better_than_what_is_known(verdicts, together):
    assert overall(verdicts) is together


@pytest.mark.extended
def test_at_most_one_false_alarm_in_200_nights():
    counts = alarms(seed=6, histories=10)  # 2,000 nights
    assert counts[Change.WORSE] <= 10
    assert counts[Change.BETTER] <= 10


@pytest.mark.extended
def test_the_alarms_would_be_too_many_without_the_correction(monkeypatch):
    monkeypatch.setattr(simulated_nights, "holm", lambda p_values: [(p, 0.01) for p in p_values])
    assert alarms(seed=6, histories=2)[Change.WORSE] > 2


@pytest.mark.extended
def test_a_slowdown_of_15_percent_is_found_with_5_nights():
    assert found_after(seed=6, histories=100, night=5) == 1.0


@pytest.mark.extended
def test_no_verdict_is_same_on_a_metric_that_is_15_percent_slower():
    found = found_at(seed=6, histories=200, share=0.03)
    assert found[Change.WORSE] >= 0.98
    assert found[Change.SAME] == 0
