"""Replays of given faults: by hand where there is one fault, and in the mean over many against eq. 10."""

from __future__ import annotations

import numpy as np
import pytest

from models.replay.borders import Borders
from models.replay.micro_batches import MicroBatches
from models.replay.periods import Periods, Rounds
from models.replay.process import Faults, ReplayResult, replay
from models.utilization import utilization

ONE = np.ones(1)


def faults(*struck_s: float, restart_s=12.0, warm_up_s=0.0) -> Faults:
    """Of one run; one restart for all faults, or one for each."""
    struck = np.array([struck_s], dtype=float)
    return Faults(struck, restart_s + np.zeros(struck.shape), np.full(struck.shape, warm_up_s))


def periods(*, lag_s=0.5, load=1.0) -> Periods:
    return Periods(10.0, ONE, lag_s * ONE, load)


def replayed(work, given: Faults, window_s=100.0, since_s=-3.0) -> ReplayResult:
    return replay(work, given, window_s, since_s * ONE)


def of(found: ReplayResult) -> tuple[list[float], list[float], list[float]]:
    """Down, warm-up and lost of the one run."""
    return found.down_s[0].tolist(), found.warm_up_s[0].tolist(), found.lost_s[0].tolist()


def test_one_fault_by_hand():
    """Periods end at 7, 17, 27, 37, 47; the checkpoint of the fourth is complete at 37.5, that of the fifth never."""
    found = replayed(periods(), faults(46.5))
    assert of(found) == ([12.0], [0.0], [9.5])
    assert found.utilizations == pytest.approx([(37 + (100 - 58.5)) * 0.9 / 100])


def test_a_checkpoint_that_is_not_complete_costs_the_period_before_it_too():
    assert of(replayed(periods(), faults(47.4)))[2] == [pytest.approx(10.4)]
    assert of(replayed(periods(), faults(47.6)))[2] == [pytest.approx(0.6)]


def test_hosts_that_are_left_keep_their_part():
    """At 46.5 half of 9.5 s is lost, and the rest counts; of the 4 s until 62.5 all."""
    found = replayed(Periods(10.0, ONE, 0.5 * ONE, lost_shares=[0.5, 1.0]), faults(46.5, 62.5))
    assert of(found) == ([12.0, 12.0], [0.0, 0.0], [pytest.approx(4.75), pytest.approx(4.0)])
    assert found.utilizations == pytest.approx([(37 * 0.9 + 4.75 + (100 - 74.5) * 0.9) / 100])


def test_work_that_was_lost_from_before_the_window_does_not_count():
    found = replayed(periods(), faults(4.0))
    assert of(found) == ([12.0], [0.0], [4.0])
    assert found.utilizations == pytest.approx([(100 - 16) * 0.9 / 100])


def test_a_fault_during_a_recovery_starts_it_again():
    found = replayed(periods(), faults(46.5, 51.5))
    assert of(found) == ([17.0, 0.0], [0.0, 0.0], [9.5, 0.0]), "all of it is the outage of the first"


def test_several_hosts_at_once_are_one_outage():
    assert of(replayed(periods(), faults(46.5, 46.5, 46.5)))[0] == [12.0, 0.0, 0.0]


def test_the_recovery_of_the_last_fault_ends_the_outage():
    """The second host returns late: its recovery takes 34.5 s, and that of the first never comes to its end."""
    found = replayed(periods(), faults(46.5, 47.5, restart_s=np.array([[12.0, 34.5]])))
    assert of(found)[0] == [47.5 + 34.5 - 46.5, 0.0]


def test_an_outage_that_the_window_cuts_counts_as_far_as_it_is_in_it():
    found = replayed(periods(), faults(95.0))
    assert of(found) == ([5.0], [0.0], [pytest.approx(8.0)])
    assert found.utilizations == pytest.approx([87 * 0.9 / 100])


def test_a_fault_amid_the_warm_up_loses_it():
    found = replayed(periods(lag_s=0.0), faults(47.0, 61.0, restart_s=12.0, warm_up_s=4.0))
    assert of(found) == ([12.0, 12.0], [0.0, 4.0], [0.0, 2.0])


def test_a_fault_after_the_window_is_none():
    assert of(replayed(periods(), faults(200.0))) == ([0.0], [0.0], [0.0])
    assert replayed(periods(), faults(200.0)).utilizations == pytest.approx([0.9])


def test_below_saturation_a_fault_takes_the_work_that_was_done_and_the_rest_is_caught_up():
    """Half of the time is idle: of 9.5 s since the last checkpoint 4.75 s were work."""
    found = replayed(periods(load=0.5), faults(46.5, 62.5))
    assert of(found)[2][0] == pytest.approx(4.75)
    assert of(found)[2][1] == pytest.approx(4.0), "16.75 s of work have piled up, so it works all the time from 58.5"


def test_rounds_are_taken_by_a_clock_that_no_recovery_sets_back():
    """Rounds at 5, 15 and so on, each complete .5 s later: the recovery from 25.3 ends at 37.3, amid an interval."""
    taken_s = np.arange(5.0, 100.0, 10.0)
    found = replayed(Rounds(10.0, ONE, taken_s, taken_s + 0.5), faults(25.3, 44.0, 96.0))
    assert of(found)[2] == [pytest.approx(10.3), pytest.approx(44.0 - 37.3), pytest.approx(1.0)]


def borders(*, load: float, runs=1, cost_s=1.0, lag_s=0.5, behind_s=0.0) -> Borders:
    """Each 10 s of event time from -3 on."""
    each = np.ones(runs)
    return Borders(10.0, -3.0, cost_s * each, lag_s * each, load, behind_s * each)


def test_borders_are_met_as_their_records_are_read():
    """At 46.5 all is read that is due, and the border at 37 is complete. From 58.5 on 21.5 s are read in half the time.

    So the system is at the border at 47 after 5 s, and at that at 57 after 10; at 66 the former is complete. From 67 on
    20 s are behind, and read by 87. At 97.2 the border at 97 has been read, but is not complete: all goes from 87 on.
    """
    given = faults(46.5, 66.0, 97.2, restart_s=np.array([[12.0, 1.0, 1.0]]))
    found = replayed(borders(load=0.5), given)
    assert of(found)[2] == pytest.approx([0.5 * 9.5, 2.5, 0.5 * 10.2])
    paid_s = 3.7 + 1.0 + 4.0 + 0.36  # borders that were met: up to 37, 63.5 and 87, and of 1.8 s at the end
    assert found.utilizations == pytest.approx([(100 - 14 - (4.75 + 2.5 + 5.1) - paid_s) / 100])


def test_a_system_that_falls_behind_meets_its_borders_more_slowly():
    """A second takes 1.25 s. It is 4 s behind at -3, so that it comes to the border at -3 after 5 s, at 2.

    From 21.9 on it goes on there, and comes to the border at 7 after 12.5 s, at 34.4.
    """
    found = replayed(borders(load=1.25, behind_s=4.0), faults(9.9, 40.0))
    assert of(found)[2] == pytest.approx([7.9, 5.6])


def test_a_batch_is_lost_from_its_start_and_done_again_at_once():
    """Batches of 9 s each 10 s from -3 on: the one from 37 is cut off at 40, and done again from 52 to 61.

    It overran the trigger at 57, so that the next one follows at once.
    """
    work = MicroBatches(ONE, np.array([9.0]), interval_s=10.0, trigger_s=-3.0)
    found = replayed(work, faults(40.0, 64.0, 68.0, restart_s=12.0))
    assert of(found) == ([12.0, 16.0, 0.0], [0.0] * 3, [3.0, pytest.approx(3.0), 0.0])


def test_between_two_batches_nothing_is_lost():
    work = MicroBatches(ONE, np.array([6.0]), interval_s=10.0, trigger_s=-3.0)
    found = replayed(work, faults(45.0))
    assert of(found)[2] == [0.0]


def test_each_batch_takes_its_own_time_and_as_long_when_it_is_done_again():
    """Batches of 4, 7 and then 5 s from 0 on: the second is cut off at 16, done again from 24 to 31, and 31 to 36."""
    work = MicroBatches(ONE, np.array([4.0, 7.0, 5.0]), interval_s=10.0)
    found = replayed(work, faults(16.0, 33.0, 38.5, restart_s=8.0), since_s=0.0)
    assert of(found)[2] == [pytest.approx(6.0), pytest.approx(2.0), 0.0]


def test_a_batch_that_a_fault_cut_off_in_fact_is_cut_off_here_too():
    """It takes 6 s when it is done again, but had not been committed after 6.5 s when the fault struck."""
    given = {"interval_s": 10.0, "commits_s": np.array([30.0])}
    assert of(replayed(MicroBatches(ONE, np.array([6.0]), **given), faults(6.5), since_s=0.0))[2] == [6.5]


@pytest.mark.extended
@pytest.mark.parametrize("load", [1.0, 0.6])
def test_all_time_is_accounted_for(load):
    rng = np.random.default_rng(3)
    struck = np.sort(rng.uniform(0, 400, (50, 12)), axis=1)
    given = Faults(struck, rng.uniform(1, 14, struck.shape), np.full(struck.shape, 2.0))
    for work in (
        Periods(10.0, np.zeros(50), np.full(50, 0.3), load),
        MicroBatches(np.zeros(50), np.array([8.0]), interval_s=10.0),
    ):
        found = replay(work, given, 400.0, -rng.uniform(0, 10, 50))
        taken_s = (found.down_s + found.warm_up_s + found.lost_s).sum(axis=1)
        assert found.utilizations * 400.0 + taken_s == pytest.approx(np.full(50, 400.0))
        moments_s = np.linspace(0.0, 400.0, 81)
        useful_s = found.useful_by(moments_s)
        assert useful_s[[0, -1]] == pytest.approx([0.0, found.utilizations.mean() * 400.0])
        assert useful_s == pytest.approx(np.concatenate([found.useful_by(each) for each in moments_s[:, np.newaxis]]))
        assert (np.diff(useful_s) > -1e-9).all()


RATE, COST_S, RECOVERY_S, INTERVAL_S, LONG_S, RUNS = 0.02, 1.0, 12.0, 10.0, 3000.0, 2000
BEFORE_S = 300.0  # so long has the process been running when the window opens


def mean_over_poisson_faults(make) -> tuple[float, float]:
    """Mean utilization and its standard error, of long windows that open amid the process."""
    rng = np.random.default_rng(11)
    gaps = rng.exponential(1 / RATE, (RUNS, round(1.8 * RATE * LONG_S)))
    struck = np.cumsum(gaps, axis=1) - BEFORE_S
    assert struck[:, -1].min() > LONG_S
    given = Faults(struck, np.full(struck.shape, RECOVERY_S - 3.0), np.full(struck.shape, 3.0))
    found = replay(make(RUNS), given, LONG_S, np.full(RUNS, -BEFORE_S)).utilizations
    return found.mean(), found.std() / RUNS**0.5


@pytest.mark.parametrize(("hop_delay_s", "depth"), [(0.0, 1), (0.4, 3), (6.0, 3)])
def test_over_poisson_faults_the_mean_of_the_replay_is_eq_10(hop_delay_s, depth):
    lag_s = (depth - 1) * hop_delay_s
    mean, error = mean_over_poisson_faults(lambda n: Periods(INTERVAL_S, np.full(n, COST_S), np.full(n, lag_s)))
    expected = utilization(RATE, COST_S, RECOVERY_S, INTERVAL_S, hop_delay_s, depth)
    assert mean == pytest.approx(expected, abs=4 * error)
    assert error < 0.001


@pytest.mark.parametrize("load", [1.0, 1.25])
def test_over_poisson_faults_borders_meet_eq_10_at_the_interval_that_the_load_makes_of_theirs(load):
    mean, error = mean_over_poisson_faults(lambda runs: borders(load=load, runs=runs, cost_s=COST_S, lag_s=0.8))
    assert mean == pytest.approx(utilization(RATE, COST_S, RECOVERY_S, load * INTERVAL_S, 0.4, 3), abs=4 * error)


@pytest.mark.extended
def test_over_poisson_faults_batches_that_follow_at_once_meet_eq_10():
    """Nothing travels, and each period begins with the restart: the model's own case."""
    mean, error = mean_over_poisson_faults(lambda runs: MicroBatches(np.full(runs, COST_S), np.array([INTERVAL_S])))
    assert mean == pytest.approx(utilization(RATE, COST_S, RECOVERY_S, INTERVAL_S), abs=4 * error)
