"""The vectorised process by hand and against the reference; the simulation against eq. 10, with bursts, too."""

import tracemalloc
from dataclasses import replace
from itertools import islice, takewhile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.errors import BadInput
from models.simulation.laws import Correlated, ExponentialTimes
from models.simulation.process import CheckpointProcess
from models.simulation.simulate import simulate
from models.utilization import optimal_interval, utilization
from tests.unit.models.event_by_event import simulate_event_by_event

# Some 100 comparisons with a fixed seed: at 4 standard errors a right simulation fails one of them with a chance of
# 1 in 160, at 3 with 1 in 4.
SIGMAS = 4.0
WINDOW = 100.0
LAWS = [ExponentialTimes(), Correlated(0.5, 4, 0.0), Correlated(0.5, 4, 15.0), Correlated(0.9, 6, 200.0)]


def one_run(times, **changes):
    """Utilization of one run in [0, 100], by the vectorised process and by the reference: the same."""
    given = {"interval": 8.0, "checkpoint_cost": 2.0, "recovery_time": 6.0, "hop_delay": 0.0, "depth": 1} | changes
    vectorised = process(**given).utilizations([np.array(times, dtype=float)[:, np.newaxis]], WINDOW)
    assert vectorised.shape == (1,)
    assert vectorised[0] == pytest.approx(simulate_event_by_event(times, window=WINDOW, **given), rel=1e-12)
    return float(vectorised[0])


def process(*, hop_delay, depth, **given):
    return CheckpointProcess(delay=(depth - 1) * hop_delay, **given)


@pytest.mark.parametrize(
    ("times", "changes", "kept"),
    [
        ([-6.0], {}, 100.0),  # up at 0, and no failure any more
        ([-6.0, 200.0], {}, 100.0),  # 25 periods by 200: the last of the window is kept after it
        ([-6.0, 103.0], {}, 96.0),  # the 13th period, of 96 to 104, is taken back by a failure after the window
        ([0.0, 200.0], {}, 94.0),  # the window opens with a recovery
        ([-14.0, 2.0, 200.0], {}, 92.0),  # kept up to 0, the rest of [0, 2] lost; up again at 8
        ([-12.0, 2.0, 200.0], {}, 2.0 + 92.0),  # a period of -6 to 2 is complete just as the failure strikes
        ([-6.0, 50.0, 200.0], {}, 48.0 + 44.0),
        ([-6.0, 50.0, 55.0, 200.0], {}, 48.0 + 39.0),  # a failure in recovery starts it again: up at 61
        ([-6.0, 50.0, 55.0, 55.0, 60.0, 200.0], {}, 48.0 + 34.0),  # twice at once, and again
        ([-6.0, 50.0, 56.0, 62.0, 200.0], {}, 48.0 + 32.0),  # just as the recovery is through: up at 68
        ([-6.0, 50.0, 57.0, 64.0, 71.0, 200.0], {}, 48.0 + 23.0),  # one after the other within a period: up at 77
        ([-6.0, 47.0, 200.0], {"recovery_time": 0.0}, 42.0 + 53.0),  # up at -6 and at 47; only 42 to 47 is lost
        ([-6.0, 50.0, 200.0], {"hop_delay": 0.5, "depth": 5}, 48.0 + 44.0),  # complete at 50: 2 after the period
        ([-6.0, 49.0, 200.0], {"hop_delay": 0.5, "depth": 5}, 40.0 + 45.0),  # the token of 48 was on its way
        ([-6.0, 50.0, 200.0], {"hop_delay": 10.0, "depth": 3}, 24.0 + 44.0),  # tokens of 32, 40, 48 on their way
        ([-6.0, 20.0, 200.0], {"hop_delay": 10.0, "depth": 3}, 74.0),  # no token can arrive
    ],
)
def test_runs_by_hand(times, changes, kept):
    """Periods of 8 with 2 of checkpoint in [0, 100], and a recovery of 6: 3/4 of what is kept is useful."""
    assert one_run(times, **changes) == pytest.approx(kept / WINDOW * 0.75)


def test_a_free_checkpoint_makes_all_that_is_kept_useful():
    assert one_run([-6.0, 50.0, 200.0], checkpoint_cost=0.0) == pytest.approx(0.92)


sixteenths = st.integers(0, 1600).map(lambda n: n / 16)  # sums, and hence ties, are exact


@pytest.mark.extended
@settings(max_examples=300, deadline=None)
@given(
    times=st.lists(st.integers(-800, 2400).map(lambda n: n / 16), max_size=25),
    interval=st.integers(1, 640).map(lambda n: n / 16),
    cost=st.floats(0.0, 1.0),
    recovery=sixteenths,
    hop_delay=st.integers(0, 200).map(lambda n: n / 16),
    depth=st.integers(1, 6),
    rows=st.sampled_from([1, 7, 1000]),
)
def test_the_reference_agrees_on_the_same_failures(times, interval, cost, recovery, hop_delay, depth, rows):
    """Failures in recovery, several in one period, at once or just in time, and delays above the interval."""
    times = sorted([*times, -50.0])
    given = {
        "interval": interval,
        "checkpoint_cost": cost * interval,
        "recovery_time": recovery,
        "hop_delay": hop_delay,
        "depth": depth,
    }
    blocks = np.split(np.array(times)[:, np.newaxis], range(rows, len(times), rows))
    vectorised = process(**given).utilizations(blocks, WINDOW)[0]
    assert 0.0 <= vectorised <= 1.0
    assert vectorised == pytest.approx(simulate_event_by_event(times, window=WINDOW, **given), rel=1e-12, abs=1e-15)


@pytest.mark.extended
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("hop_delay", "depth"), [(0.0, 1), (0.4, 9), (9.0, 4)])
@pytest.mark.parametrize("rows", [1, 7, 5000])
def test_the_reference_agrees_under_every_law_whatever_the_chunk(law, hop_delay, depth, rows):
    runs, rate, window = 3, 0.05, 4000.0
    given = {"interval": 11.0, "checkpoint_cost": 1.5, "recovery_time": 7.0, "hop_delay": hop_delay, "depth": depth}
    drawn = np.concatenate(list(islice(law.failures(np.random.default_rng(4), rate, runs, 400), 12)))
    assert (drawn[-1] > window).all()
    vectorised = process(**given).utilizations(np.split(drawn, range(rows, len(drawn), rows)), window)
    for run in range(runs):
        beyond = drawn[drawn[:, run] > window, run][0]
        column = [*takewhile(lambda time: time < beyond, drawn[:, run].tolist()), beyond]  # noqa: B023
        plain = simulate_event_by_event(column, window=window, **given)
        assert vectorised[run] == pytest.approx(plain, rel=1e-11)


def deviation(result, expected):
    """Standard errors between the mean of the runs and what is expected."""
    return abs(result.mean - expected) / result.standard_error


@pytest.mark.parametrize("rate", [0.1, 0.05, 0.025, 0.005])
@pytest.mark.parametrize(("hop_delay", "depth"), [(0.0, 1), (0.5, 5), (0.5, 25), (0.5, 50)])
@pytest.mark.parametrize("stretch", [0.6, 1.0, 2.0])
def test_the_paper_s_simulations_meet_eq_10(rate, hop_delay, depth, stretch):
    """Figures 5 and 12 at a fifth of the paper's length: R = 10, c = 5, delta = .5 min."""
    given = {"checkpoint_cost": 5.0, "recovery_time": 10.0, "hop_delay": hop_delay, "depth": depth}
    interval = max(6.0, stretch * optimal_interval(rate, 5.0))
    result = simulate(failure_rate=rate, interval=interval, failures=400, seed=depth, **given)
    assert deviation(result, utilization(rate, 5.0, 10.0, interval, hop_delay, depth)) < SIGMAS


@pytest.mark.parametrize("failures", [1, 10])
@pytest.mark.parametrize(("hop_delay", "depth"), [(0.0, 1), (2.0, 8)])
def test_a_short_window_is_as_unbiased_as_a_long_one(failures, hop_delay, depth):
    """A window of 1 / L is no longer than a few periods, and its edges would show: its standard error is .0017."""
    result = simulate(
        failure_rate=0.02,
        checkpoint_cost=2.0,
        recovery_time=12.0,
        interval=20.0,
        hop_delay=hop_delay,
        depth=depth,
        failures=failures,
        runs=40_000,
        seed=1,
    )
    assert result.runs == 40_000
    assert result.standard_error < 0.002
    assert deviation(result, utilization(0.02, 2.0, 12.0, 20.0, hop_delay, depth)) < SIGMAS


@pytest.mark.parametrize("law", [Correlated(0.5, 4, 20.0), Correlated(1.0, 8, 30.0), Correlated(0.3, 4)], ids=str)
def test_a_burst_costs_as_if_recovery_took_longer(law):
    """No failure in a time x >= spread has a chance of exp(-rate (x + mean reach)): eq. 10 with R + mean reach."""
    rate, size = 0.02, law.domain_size
    reach = law.domain_share * law.spread * (size - 1) / (size + 1)
    expected = utilization(law.shock_rate(rate), 3.0, 12.0 + reach, 18.0)
    result = simulate(
        failure_rate=rate, checkpoint_cost=3.0, recovery_time=12.0, interval=18.0, failures=300, law=law, seed=2
    )
    assert deviation(result, expected) < SIGMAS


def test_limits():
    paper = {"failure_rate": 0.05, "checkpoint_cost": 5.0, "recovery_time": 10.0, "interval": 12.0, "failures": 200}

    def run(**changes):
        return simulate(**{**paper, **changes}, seed=3)

    rare = run(failure_rate=1e-12, interval=2.0, checkpoint_cost=0.5)  # a window of 1e14 periods: eq. 1
    assert rare.mean == pytest.approx(0.75, rel=1e-9)
    assert deviation(run(recovery_time=0.0), utilization(0.05, 5.0, 0.0, 12.0)) < SIGMAS
    assert deviation(run(checkpoint_cost=0.0, interval=0.01), np.exp(-0.5)) < SIGMAS  # always saved: only R costs
    assert run(interval=1e6).mean == 0.0  # no gap is long enough for one checkpoint
    assert run(recovery_time=1e6).mean == 0.0
    assert run(hop_delay=1e6, depth=2).mean == 0.0


def test_a_window_without_failures():
    """Up since the last failure, and until the next, far beyond the window: every period is kept."""
    given = {"checkpoint_cost": 1.0, "recovery_time": 10.0, "interval": 4.0, "hop_delay": 3.0, "depth": 4}
    rare = ExponentialTimes().failures(np.random.default_rng(0), 1e-9, 20, 1)
    assert process(**given).utilizations(rare, 1000.0).tolist() == [0.75] * 20


def test_a_result_is_what_its_runs_are():
    result = simulate(
        failure_rate=0.05, checkpoint_cost=5.0, recovery_time=10.0, interval=12.0, runs=9, failures=50, seed=0
    )
    assert result.runs == result.utilizations.size == 9
    assert result.mean == pytest.approx(sum(result.utilizations) / 9)
    assert result.std == pytest.approx(np.sqrt(sum((result.utilizations - result.mean) ** 2) / 8))
    assert result.standard_error == pytest.approx(result.std / 3)


def test_the_seed_decides_and_spawned_seeds_are_independent():
    def mean(seed):
        return simulate(
            failure_rate=0.05, checkpoint_cost=5.0, recovery_time=10.0, interval=12.0, runs=4, failures=50, seed=seed
        ).mean

    assert mean(7) == mean(7) == mean(np.random.SeedSequence(7))
    first, second = np.random.SeedSequence(7).spawn(2)
    assert len({mean(7), mean(8), mean(first), mean(second)}) == 4


@pytest.mark.parametrize("law", [ExponentialTimes(), Correlated(0.5, 4, 20.0)], ids=str)
@pytest.mark.parametrize(("runs", "failures"), [(250, 100), (3000, 30)])
def test_memory_is_bounded_by_the_chunk(law, runs, failures):
    def peak(failures):
        given = {"failure_rate": 0.02, "checkpoint_cost": 3.0, "recovery_time": 12.0, "interval": 18.0}
        tracemalloc.start()
        simulate(**given, runs=runs, failures=failures, law=law, seed=0)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1)  # what is loaded at first use is not of the run
    assert peak(10 * failures) == pytest.approx(peak(failures), rel=0.1)


@settings(max_examples=60, deadline=None)
@pytest.mark.filterwarnings("error")
@given(
    rate=st.floats(1e-297, 1e300),
    cost=st.floats(0.0, 1e300),
    recovery=st.floats(0.0, 1.7e308),
    extra=st.floats(1e-300, 1e300),
    depth=st.integers(1, 10**9),
    law=st.sampled_from(LAWS),
)
def test_finite_input_never_gives_nan_or_a_warning(rate, cost, recovery, extra, depth, law):
    law = replace(law, spread=law.spread * 0.05 / rate) if isinstance(law, Correlated) else law
    interval = max(cost + extra, np.nextafter(cost, np.inf))
    result = simulate(
        failure_rate=rate,
        checkpoint_cost=cost,
        recovery_time=recovery,
        interval=interval,
        hop_delay=recovery,
        depth=depth,
        runs=3,
        failures=5,
        law=law,
        seed=0,
    )
    assert (result.utilizations >= 0).all()
    assert (result.utilizations <= 1 + 1e-12).all()
    assert np.isfinite([result.mean, result.std, result.standard_error]).all()


GOOD = {"failure_rate": 0.05, "checkpoint_cost": 5.0, "recovery_time": 10.0, "interval": 12.0, "seed": 0}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("failure_rate", value) for value in (0.0, -1.0, np.nan, 1e-300)],
        ("checkpoint_cost", -1.0),
        ("recovery_time", np.inf),
        ("interval", 5.0),
        ("hop_delay", -1.0),
        ("depth", 0),
        *[("runs", value) for value in (1, 0, 2.5)],
        *[("failures", value) for value in (0, 1.5, -1)],
        *[("seed", value) for value in (-1, 0.5)],
    ],
)
def test_bad_input_is_named(field, value):
    with pytest.raises(BadInput) as caught:
        simulate(**{**GOOD, field: value})
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def test_bursts_that_overlap_without_end_are_refused():
    with pytest.raises(BadInput) as caught:
        simulate(**GOOD, law=Correlated(0.5, 3, 4001.0))  # a shock every 40
    assert caught.value.field == "spread"
