"""The online estimator: intervals by hand, their coverage, convergence, adaptation, and what the estimate costs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from experiments.errors import BadInput
from models.gain import gain
from models.interval_estimator import IntervalEstimator, IntervalRecommendation
from models.utilization import optimal_interval

EACH_95 = 0.95**2  # the confidence at which both estimates have 95 %


def watch(estimator, rng, *, rate, cost_s, duration_s, period_s):
    """A stretch of a running system: exponential failures, checkpoints every period with costs of Gamma(20)."""
    failures = np.sort(rng.uniform(0, duration_s, rng.poisson(rate * duration_s)))
    checkpoints = np.arange(period_s, duration_s, period_s)
    events = sorted([(at, 1) for at in failures] + [(at, 0) for at in checkpoints] + [(duration_s, 0)])
    now = 0.0
    for at, struck in events:
        estimator, now = estimator.observe_time(at - now, struck), at
        if not struck:
            estimator = estimator.observe_checkpoint(cost_s * rng.gamma(20) / 20)
    return estimator


def share_within(estimates, true):
    return np.mean([low <= true <= high for _, low, high in estimates])


def least_share(level, runs):
    """Four standard errors of a binomial share below its level."""
    return level - 4 * math.sqrt(level * (1 - level) / runs)


@pytest.mark.parametrize(("failures", "low", "high"), [(0, 0.0, 3.6889), (1, 0.0253, 5.5716), (10, 4.7954, 18.3904)])
def test_the_rate_has_the_exact_interval_of_a_poisson_count(failures, low, high):
    found = IntervalEstimator(0.01, confidence=EACH_95).observe_time(200.0, failures).failure_rate()
    assert (200 * found.low, 200 * found.high) == pytest.approx((low, high), abs=1e-4)
    assert found.value == pytest.approx((failures + 0.5) / (200 + 50))


def test_the_cost_has_students_interval():
    found = IntervalEstimator(0.01, confidence=EACH_95)
    for cost_s in (1.0, 2.0, 3.0):
        found = found.observe_checkpoint(cost_s)
    reach = 4.302653 / math.sqrt(3)  # t of 2 degrees of freedom; the scatter is 1
    assert found.checkpoint_cost() == pytest.approx((2.0, max(0.0, 2 - reach), 2 + reach), rel=1e-6)


def test_before_any_failure_the_prior_decides_and_the_lower_end_is_known():
    estimator = IntervalEstimator(1e-3).observe_checkpoint(2.0).observe_checkpoint(2.0)
    fresh, quiet = estimator.recommend(), estimator.observe_time(1e5).recommend()
    assert fresh.interval_s == pytest.approx(optimal_interval(1e-3, 2.0))
    assert (fresh.low_s, fresh.high_s) == (2.0, math.inf)  # the rate may be anything: T* is at least the cost
    assert quiet.interval_s == pytest.approx(optimal_interval(0.5 / (1e5 + 500), 2.0))
    highest = -math.log((1 - math.sqrt(0.95)) / 2) / 1e5  # P(no failure) at it is the tail
    assert quiet.low_s == pytest.approx(optimal_interval(highest, 2.0))
    assert quiet.high_s == math.inf


def test_one_checkpoint_gives_a_recommendation_without_an_upper_end():
    found = IntervalEstimator(0.01).observe_time(100.0, 2).observe_checkpoint(3.0).recommend()
    assert found == IntervalRecommendation(pytest.approx(optimal_interval(2.5 / 150, 3.0)), 0.0, math.inf)


def test_a_prior_that_the_evidence_excludes_gives_way():
    found = IntervalEstimator(1e-9).observe_time(100.0, 40).failure_rate()
    assert found.value == found.low > 0.2


@pytest.mark.parametrize("expected", [0.05, 0.7, 3.0, 12.5, 80.0])
def test_coverage_of_the_rate_is_never_below_its_level(expected):
    """Summed over all counts that can occur, not sampled."""
    counts = np.arange(300)
    within = [
        low <= expected / 50 <= high
        for _, low, high in (IntervalEstimator(0.1).observe_time(50.0, int(k)).failure_rate() for k in counts)
    ]
    assert stats.poisson.pmf(counts, expected) @ within >= math.sqrt(0.95)


@pytest.mark.extended
@pytest.mark.parametrize("memory_s", [math.inf, 1000.0])
@pytest.mark.parametrize(("rate", "level"), [(0.001, 0.95), (0.01, 0.95), (0.01, 0.5)])
def test_coverage_of_the_interval(rate, level, memory_s):
    rng, runs, cost_s = np.random.default_rng(17), 300, 2.0
    estimator = IntervalEstimator(0.1, memory_s, level)
    seen = [watch(estimator, rng, rate=rate, cost_s=cost_s, duration_s=4000.0, period_s=200.0) for _ in range(runs)]
    each = least_share(math.sqrt(level), runs)
    assert share_within([found.failure_rate() for found in seen], rate) >= each
    assert share_within([found.checkpoint_cost() for found in seen], cost_s) >= each
    assert share_within([found.recommend() for found in seen], optimal_interval(rate, cost_s)) >= least_share(
        level, runs
    )


def test_intervals_do_not_cover_by_being_useless():
    rng = np.random.default_rng(2)
    found = watch(IntervalEstimator(1.0), rng, rate=0.01, cost_s=2.0, duration_s=100_000.0, period_s=200.0).recommend()
    assert 1.0 < found.high_s / found.low_s < 1.15  # 1000 failures: T* to about 2 x 2.2 sqrt(1 / 1000) / 2


def test_it_converges_to_the_optimum():
    rng, estimator, errors = np.random.default_rng(3), IntervalEstimator(0.5), []
    for duration_s in (1e3, 1e4, 1e5, 1e6):
        estimator = watch(estimator, rng, rate=0.01, cost_s=2.0, duration_s=duration_s, period_s=250.0)
        errors.append(abs(math.log(estimator.recommend().interval_s / optimal_interval(0.01, 2.0))))
    assert errors[-1] < 4 * 0.5 * math.sqrt(1 / (0.01 * 1e6))  # half the relative error of the rate
    assert errors[-1] < errors[0]


@pytest.mark.parametrize(("rate", "cost_s"), [(0.09, 1.0), (0.01, 6.0), (0.002, 0.3)])
def test_it_adapts_when_the_rate_or_the_cost_changes(rate, cost_s):
    rng, memory_s = np.random.default_rng(4), 20_000.0
    forgetful, faithful = IntervalEstimator(0.01, memory_s), IntervalEstimator(0.01)
    before = {"rate": 0.01, "cost_s": 1.0, "duration_s": 8 * memory_s, "period_s": 100.0}
    after = {"rate": rate, "cost_s": cost_s, "duration_s": 8 * memory_s, "period_s": 100.0}
    forgetful, faithful = (
        watch(watch(each, rng, **before), rng, **after).recommend() for each in (forgetful, faithful)
    )
    best = optimal_interval(rate, cost_s)
    error = 0.5 / math.sqrt(2 * rate * memory_s)  # of the logarithm of T*; the cost's own is far smaller
    assert abs(math.log(forgetful.interval_s / best)) < 4 * error + math.exp(-8) * 9
    assert forgetful.low_s < best < forgetful.high_s
    assert not faithful.low_s < best < faithful.high_s


def test_fading_weighs_evidence_by_its_age():
    memory_s, gaps, costs = 50.0, [10.0, 35.0, 80.0], [1.0, 4.0, 2.5]
    estimator = IntervalEstimator(0.01, memory_s)
    for gap, cost in zip(gaps, costs, strict=True):
        estimator = estimator.observe_time(gap, 1).observe_checkpoint(cost)
    weights = np.exp(-np.array([115.0, 80.0, 0.0]) / memory_s)
    assert estimator.failures == pytest.approx(weights.sum())
    assert estimator.failures_squared == pytest.approx((weights**2).sum())
    assert estimator.exposure_s == pytest.approx(memory_s * (1 - math.exp(-125 / memory_s)))
    mean = np.average(costs, weights=weights)
    assert estimator.checkpoint_cost().value == pytest.approx(mean)
    assert estimator.costs.scatter == pytest.approx(weights @ (costs - mean) ** 2)


def test_cost_evidence_outlives_any_pause():
    estimator = IntervalEstimator(0.01, 1.0)
    for cost_s in (1.0, 2.0, 3.0):
        estimator = estimator.observe_checkpoint(cost_s)
    paused = estimator.observe_time(1e6)
    assert paused.checkpoint_cost() == estimator.checkpoint_cost()
    assert paused.observe_checkpoint(9.0).checkpoint_cost().value == 9.0


@pytest.mark.parametrize("failures_in_memory", [25, 100])
def test_what_the_estimate_costs(failures_in_memory):
    """Against T* of the true rate and cost: what the second order predicts from the scatter of both estimates."""
    rng, rate, cost_s, runs = np.random.default_rng(6), 0.01, 0.5, 150
    memory_s = failures_in_memory / rate
    estimator = IntervalEstimator(rate, memory_s)
    seen = [
        watch(estimator, rng, rate=rate, cost_s=cost_s, duration_s=4 * memory_s, period_s=memory_s / 10).recommend()
        for _ in range(runs)
    ]
    lost = -gain(rate, cost_s, np.array([found.interval_s for found in seen]), optimal_interval(rate, cost_s))
    # a quarter of the relative variances: of a faded count, and of 20 costs' worth of costs that vary by 1 / sqrt(20)
    variance = (1 / (2 * failures_in_memory) + 1 / 20 / 20) / 4
    predicted = math.sqrt(2 * cost_s * rate) * variance / 2
    assert (lost >= 0).all()
    next_order = 4 / failures_in_memory
    assert abs(lost.mean() / predicted - 1) < 4 * lost.std() / math.sqrt(runs) / predicted + next_order
    assert lost.max() < 0.02


seconds = st.floats(0.0, 1e9)
observations = st.lists(st.one_of(st.tuples(seconds, st.integers(0, 50)), st.floats(0.0, 1e9)), max_size=12)


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-12, 1e3), st.one_of(st.just(math.inf), st.floats(1e-3, 1e9)), st.floats(0.01, 0.999), observations)
@pytest.mark.filterwarnings("error")
def test_any_history_gives_an_ordered_recommendation(prior, memory_s, confidence, history):
    estimator = IntervalEstimator(prior, memory_s, confidence).observe_checkpoint(1.0)
    for seen in history:
        estimator = estimator.observe_checkpoint(seen) if isinstance(seen, float) else estimator.observe_time(*seen)
    found = estimator.recommend()
    assert 0.0 <= found.low_s <= found.interval_s <= found.high_s
    assert math.isfinite(found.interval_s)


@given(seconds, seconds, st.integers(0, 9), st.floats(1.0, 1e6))
def test_time_may_be_observed_in_parts(first, second, failures, memory_s):
    start = IntervalEstimator(0.1, memory_s).observe_time(3.0, 2)
    parts, whole = (
        start.observe_time(first).observe_time(second, failures),
        start.observe_time(first + second, failures),
    )
    assert parts.exposure_s == pytest.approx(whole.exposure_s, rel=1e-9)
    assert parts.failures == pytest.approx(whole.failures, rel=1e-6, abs=1e-12)


def test_observing_leaves_the_estimator_as_it_was():
    estimator = IntervalEstimator(0.1)
    estimator.observe_time(5.0, 1).observe_checkpoint(2.0)
    assert estimator == IntervalEstimator(0.1)


MISTAKES = {
    "no rate": ("prior_failure_rate", lambda: IntervalEstimator(0.0)),
    "nan for a rate": ("prior_failure_rate", lambda: IntervalEstimator(math.nan)),
    "no memory": ("memory_s", lambda: IntervalEstimator(0.1, 0.0)),
    "nan for a memory": ("memory_s", lambda: IntervalEstimator(0.1, math.nan)),
    "certainty": ("confidence", lambda: IntervalEstimator(0.1, confidence=1.0)),
    "nan for a confidence": ("confidence", lambda: IntervalEstimator(0.1, confidence=math.nan)),
    "a cost below 0": ("cost_s", lambda: IntervalEstimator(0.1).observe_checkpoint(-1.0)),
    "nan for a cost": ("cost_s", lambda: IntervalEstimator(0.1).observe_checkpoint(math.nan)),
    "time backwards": ("seconds", lambda: IntervalEstimator(0.1).observe_time(-1.0)),
    "endless time": ("seconds", lambda: IntervalEstimator(0.1).observe_time(math.inf)),
    "half a failure": ("failures", lambda: IntervalEstimator(0.1).observe_time(1.0, 0.5)),
    "no checkpoint yet": ("checkpoints", lambda: IntervalEstimator(0.1).observe_time(9.0, 1).recommend()),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_bad_input_is_named(mistake):
    field, build = MISTAKES[mistake]
    with pytest.raises(BadInput) as caught:
        build()
    assert caught.value.field == field
    assert "\n" not in str(caught.value)
