"""The predictive interval of one finite run: against eq. 10, against runs simulated another way, and by hand."""

import time

import numpy as np
import pytest

from experiments.errors import BadInput
from models import uncertainty
from models.replay.periods import Periods
from models.replay.process import Faults, replay
from models.uncertainty import MOST_FAILURES, HostGaps, Prediction, predict_run, simulate_windows
from models.utilization import utilization

COSTS = (0.8, 0.9, 1.0, 1.1, 1.2)
RECOVERIES = (5.0, 6.0, 7.0)


def predict(**changes) -> Prediction:
    given = {
        "window_s": 480.0,
        "interval_s": 8.0,
        "checkpoint_costs_s": COSTS,
        "recovery_times_s": RECOVERIES,
        "hop_delay_s": 0.0,
        "depth": 1,
        "failures": 12,
        "failure_rate": 0.025,
        "runs": 500,
        "seed": 1,
    }
    return predict_run(**{**given, **changes})


def instant_by_instant(rng, *, window_s, interval_s, cost_s, recovery_s, failures, step_s=0.02):
    """One run on a grid of instants: work, checkpoint or downtime; a failure takes back the work that is not saved."""
    steps = round(window_s / step_s)
    failing = set(rng.integers(0, steps, failures).tolist())
    phase_s, down_s, work_s, saved_s = rng.uniform(0, interval_s), 0.0, 0.0, 0.0
    for step in range(steps):
        if step in failing:
            work_s, phase_s, down_s = 0.0, 0.0, recovery_s
        if down_s > 0:
            down_s -= step_s
            continue
        phase_s += step_s
        work_s += step_s if phase_s <= interval_s - cost_s else 0.0
        if phase_s >= interval_s:
            saved_s, work_s, phase_s = saved_s + work_s, 0.0, 0.0
    return (saved_s + work_s) / window_s


def test_predicted_is_eq_10_at_the_mean_inputs_and_the_rate_of_the_plan():
    assert predict().predicted == pytest.approx(utilization(12 / 480, 1.0, 6.0, 8.0))
    by_rate = predict(failures=None, failure_rate=0.03, hop_delay_s=0.4, depth=3)
    assert by_rate.predicted == pytest.approx(utilization(0.03, 1.0, 6.0, 8.0, 0.4, 3))


@pytest.mark.extended
@pytest.mark.parametrize(("hop_delay_s", "depth"), [(0.0, 1), (0.5, 4), (3.0, 5)])
def test_long_runs_meet_eq_10(hop_delay_s, depth):
    """With constant cost and recovery, and Poisson failures, eq. 10 is exact in the long run."""
    constant = {
        "checkpoint_costs_s": (1.0,) * 3,
        "recovery_times_s": (6.0,) * 3,
        "failures": None,
        "failure_rate": 0.04,
    }
    runs = 60
    result = predict(window_s=50_000.0, hop_delay_s=hop_delay_s, depth=depth, runs=runs, **constant)
    standard_error = (result.high - result.low) / (2 * 1.96) / np.sqrt(runs)
    assert result.mean == pytest.approx(result.predicted, abs=4 * standard_error)
    assert standard_error < 0.001


def test_the_interval_holds_95_percent_of_runs_simulated_another_way():
    rng = np.random.default_rng(5)
    run = {"window_s": 240.0, "interval_s": 8.0, "failures": 8}
    fixed = predict(**run, checkpoint_costs_s=(1.0,) * 3, recovery_times_s=(6.0,) * 3, runs=4000)
    observed = np.array([instant_by_instant(rng, **run, cost_s=1.0, recovery_s=6.0) for _ in range(300)])
    inside = ((observed >= fixed.low) & (observed <= fixed.high)).mean()
    assert inside == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 300))
    assert observed.mean() == pytest.approx(fixed.mean, abs=4 * observed.std() / np.sqrt(300))


def test_a_run_without_failures_is_eq_1_whatever_the_recovery():
    result = predict(failures=0, recovery_times_s=(), checkpoint_costs_s=(1.0,) * 3)
    assert (result.predicted, result.low, result.high) == pytest.approx((7 / 8, 7 / 8, 7 / 8))


def test_without_a_rate_and_a_plan_there_are_no_failures():
    assert predict(failures=None, failure_rate=0.0, recovery_times_s=()).predicted == pytest.approx(7 / 8)


def test_more_certain_means_narrow_the_interval():
    """Without failures only the checkpoint costs scatter: both the draws and, with few samples, their mean."""
    few = predict(failures=0, checkpoint_costs_s=COSTS, runs=2000)
    many = predict(failures=0, checkpoint_costs_s=COSTS * 40, runs=2000)
    sampling, drawing = np.std(COSTS) / np.sqrt(5), np.std(COSTS) / np.sqrt(60)
    expected = np.hypot(sampling, drawing) / np.hypot(sampling / np.sqrt(40), drawing)
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(expected, rel=0.1)


def test_scattered_recoveries_and_a_random_number_of_failures_widen_it():
    def width(**changes):
        result = predict(runs=1000, **changes)
        return result.high - result.low

    assert width(recovery_times_s=(1.0, 6.0, 11.0)) > 1.2 * width(recovery_times_s=(6.0,) * 3)
    assert width(failures=None) > 1.5 * width()


def test_a_rate_that_was_seen_in_one_run_widens_the_interval_of_the_next():
    """Each failure costs R and hardly anything else, so the interval is that of their number.

    At a known rate the variance of the number is m. If n = m failures are all that is known of the rate, it is
    (n + 1/2) (1 + m / n) m / n, which is 2 n + 1.
    """
    cheap = {"interval_s": 0.01, "checkpoint_costs_s": (0.0,) * 3, "recovery_times_s": (1.0,) * 3, "runs": 4000}
    known = predict(failures=None, failure_rate=16 / 480, **cheap)
    seen = predict(failures=None, failure_rate=16 / 480, failures_seen=16, **cheap)
    assert (seen.high - seen.low) / (known.high - known.low) == pytest.approx(np.sqrt(33 / 16), rel=0.08)
    often = predict(failures=None, failure_rate=16 / 480, failures_seen=10**6, **cheap)
    assert often.high - often.low == pytest.approx(known.high - known.low, rel=0.08)
    assert seen.predicted == known.predicted


@pytest.mark.extended
def test_the_next_run_is_inside_as_often_as_the_interval_says_though_only_one_run_has_shown_the_rate():
    """With the rate taken as known the interval of a run that has had six failures holds four of five."""
    rng = np.random.default_rng(8)
    cheap = {"interval_s": 8.0, "checkpoint_costs_s": (1.0,) * 3, "recovery_times_s": (6.0,) * 3, "runs": 300}
    rate, runs, inside = 6 / 480, 200, 0
    for seed in range(runs):
        seen = max(1, int(rng.poisson(rate * 480)))
        found = predict(failures=None, failure_rate=seen / 480, failures_seen=seen, seed=seed, **cheap)
        given = {"window": 480.0, "failures": int(rng.poisson(rate * 480)), "interval": 8.0, "runs": 1}
        (next_run,) = simulate_windows(**given, checkpoint_cost=1.0, recovery_time=6.0, seed=10_000 + seed)
        inside += found.low <= next_run <= found.high
    assert 0.95 * runs - 4 * np.sqrt(0.95 * 0.05 * runs) <= inside


@pytest.mark.extended
@pytest.mark.parametrize(("seen", "expected"), [(3, 0.91), (10, 0.95)])
def test_by_few_recoveries_that_scatter_the_interval_holds_somewhat_fewer_runs(seen, expected):
    """Recoveries are normal, with a standard deviation of 40 % of the mean of 10 s."""
    rng, runs, inside = np.random.default_rng(9), 400, 0
    work = Periods(8.0, np.ones(runs), np.zeros(runs))
    struck_s = rng.uniform(0.0, 480.0, (runs, 40))
    struck_s[np.arange(40) >= rng.poisson(12.0, runs)[:, np.newaxis]] = np.inf
    recoveries_s = np.maximum(rng.normal(10.0, 4.0, (runs, seen + 40)), 0.1)
    faults = Faults(np.sort(struck_s, axis=1), recoveries_s[:, seen:], np.zeros((runs, 40)))
    measured = replay(work, faults, 480.0, -rng.uniform(0.0, 8.0, runs)).utilizations
    for run, utilization_of_run in enumerate(measured):
        given = recoveries_s[run, :seen].tolist()
        found = predict(failures=None, recovery_times_s=given, checkpoint_costs_s=(1.0,) * 3, runs=200, seed=run)
        inside += found.low <= utilization_of_run <= found.high
    assert inside / runs == pytest.approx(expected, abs=3 * np.sqrt(expected * (1 - expected) / runs))


def test_a_failure_during_recovery_starts_the_recovery_again():
    """A recovery longer than the window: what is kept ends at the last checkpoint before the first failure."""
    result = predict(recovery_times_s=(1000.0,) * 3, failures=40, checkpoint_costs_s=(0.0,) * 3, runs=2000)
    first_failure_s = 480 / 41  # mean of the least of 40 uniform times
    assert first_failure_s / 480 - 8 / 480 < result.mean < first_failure_s / 480


@pytest.mark.parametrize(
    ("samples", "values"),
    [
        ("checkpoint_costs_s", (1.0, 1.0)),
        ("recovery_times_s", (6.0, 6.0)),
        ("recovery_times_s", ()),
        ("checkpoint_costs_s", ()),
    ],
)
def test_too_few_samples_are_unknown(samples, values):
    result = predict(**{samples: values})
    assert (result.low, result.high, result.mean) == (None, None, None)


def test_two_costs_still_predict_a_value_and_no_recovery_does_not():
    assert predict(checkpoint_costs_s=(0.5, 1.5)).predicted == pytest.approx(utilization(0.025, 1.0, 6.0, 8.0))
    assert predict(recovery_times_s=()).predicted is None


def test_the_seed_decides():
    assert predict(seed=3) == predict(seed=3)
    assert predict(seed=3) != predict(seed=4)


def test_a_benchmark_is_predicted_in_seconds():
    started = time.process_time()
    predict(runs=2000, hop_delay_s=0.5, depth=3)
    assert time.process_time() - started < 3


def test_a_run_of_a_thousand_faults_is_predicted_in_seconds():
    """The time to draw recoveries grows with the faults, not with faults times measured recoveries."""
    rng, started = np.random.default_rng(5), time.process_time()
    predict(window_s=2e4, failures=1000, recovery_times_s=rng.uniform(5.0, 15.0, 1000).tolist(), runs=500)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("window_s", {"window_s": 0.0}),
        ("window_s", {"window_s": float("inf")}),
        ("failures", {"failures": -1}),
        ("failure_rate", {"failures": None, "failure_rate": -0.1}),
        ("failure_rate", {"failures": None, "failure_rate": float("nan")}),
        ("failures_seen", {"failures": None, "failures_seen": 0}),
        ("runs", {"runs": 0}),
        ("interval", {"interval_s": 0.9}),
        ("failures", {"failures": None, "failure_rate": 1e9}),
        ("failures", {"failures": MOST_FAILURES // 100 + 1, "runs": 100}),
        ("seed", {"seed": -1}),
        ("checkpoint_costs_s", {"checkpoint_costs_s": (float("nan"), 1.0, 1.0)}),
        ("checkpoint_costs_s", {"checkpoint_costs_s": (-5.0, 1.0, 9.0)}),
        ("recovery_times_s", {"recovery_times_s": (-50.0, 51.0, 3.0)}),
        ("hop_delay", {"hop_delay_s": -0.1}),
        ("depth", {"depth": 0}),
    ],
    ids=lambda value: str(value),
)
def test_bad_input_is_named(field, changes):
    with pytest.raises(BadInput) as caught:
        predict(**changes)
    assert caught.value.field == field


def test_failures_are_bounded_in_the_run_that_draws_the_most(monkeypatch):
    """If one failure is all that is known of the rate, some runs draw several times the mean."""
    monkeypatch.setattr(uncertainty, "MOST_FAILURES", 10_000)
    assert predict(failures=100, runs=100).mean
    with pytest.raises(BadInput, match="at most 100 in the window of each of 100 runs") as caught:
        predict(failures=None, failure_rate=80 / 480, failures_seen=1, runs=100)
    assert caught.value.field == "failures"
    assert caught.value.value > 100


def test_failures_of_one_host_that_is_always_back_before_the_next_cost_a_whole_recovery_each():
    """Periods are so short that hardly any work is lost, and a fault in twenty is cut by the end of its window."""
    given = {"window": 480.0, "failures": 20, "checkpoint_cost": 0.0, "recovery_time": 6.0, "interval": 0.01, "seed": 1}
    apart = simulate_windows(**given, gaps=HostGaps(hosts=1, least=6.0), runs=400)
    assert apart.mean() == pytest.approx(1 - 20 * 6 / 480, abs=0.002)
    assert simulate_windows(**given, runs=400).mean() > apart.mean() + 0.02, "recoveries that overlap cost less"


def test_gaps_that_hardly_any_plan_follows_are_refused():
    given = {"window": 480.0, "failures": 40, "checkpoint_cost": 1.0, "recovery_time": 6.0, "interval": 8.0, "seed": 1}
    with pytest.raises(BadInput, match="gaps"):
        simulate_windows(**given, gaps=HostGaps(hosts=1, least=10.0))
