"""Hosts that are away while the others go on: by hand, and in the mean over Poisson faults against formulas."""

from __future__ import annotations

from math import comb, exp

import numpy as np
import pytest

from models import partial_rollback
from models.replay.downtimes import HostDowntimes
from models.replay.micro_batches import MicroBatches
from models.replay.process import Faults, ReplayResult, replay

ONE = np.ones(1)


def away(*until_s: float, from_s, hosts=3, struck=None) -> HostDowntimes:
    """Of one run; each downtime is of a host of its own unless told."""
    return HostDowntimes(
        hosts, range(len(until_s)) if struck is None else struck, from_s, np.array([until_s], dtype=float)
    )


def replayed(given: HostDowntimes, *struck_s: float, share=1 / 3, window_s=100.0) -> ReplayResult:
    """Batches of 10 s that follow each other from 0 on."""
    work = MicroBatches(ONE, np.array([10.0]), lost_shares=share, downtimes=given)
    nothing = np.zeros((1, len(struck_s)))
    return replay(work, Faults(np.array([struck_s]), nothing, nothing), window_s, 0.0 * ONE)


def test_one_host_of_three_by_hand():
    """From 4 to 16 a third of the work is not done: of 10 s 4 are done by 4, and the others at 13."""
    found = away(16.0, from_s=[4.0])
    assert found.done(0 * ONE, 13 * ONE) == pytest.approx([10.0])
    assert found.end(0 * ONE, 10 * ONE) == pytest.approx([13.0])
    assert found.end(2 * ONE, 1 * ONE) == pytest.approx([3.0]), "before it left"
    assert found.end(0 * ONE, 20 * ONE) == pytest.approx([24.0]), "4 s of 12 are missing in the end"


def test_while_all_are_away_nothing_is_done():
    found = away(9.0, 8.0, from_s=[2.0, 5.0], hosts=2)
    assert found.end(0 * ONE, 4 * ONE) == pytest.approx([8 + 0.5 / 0.5]), "2 s, then 1.5 s at half pace until 5"
    assert found.done(5 * ONE, 8 * ONE) == pytest.approx([0.0])


def test_a_host_that_is_struck_while_it_is_away_is_away_once():
    found = away(16.0, 20.0, from_s=[4.0, 10.0], struck=[0, 0])
    assert found.done(0 * ONE, 30 * ONE) == pytest.approx([30 - 16 / 3])
    sooner = away(16.0, 12.0, from_s=[4.0, 10.0], struck=[0, 0])
    assert sooner.done(0 * ONE, 30 * ONE) == pytest.approx([30 - 8 / 3]), "until the last strike says"


def test_a_fault_costs_what_the_host_had_done_and_what_it_does_not_do_while_it_is_away():
    """At 4 it takes 4/3 s of the batch, and until 10 it does not do 2 s: the batch ends 10/3 s late."""
    found = replayed(away(10.0, from_s=[4.0]), 4.0)
    assert found.lost_s[0] == pytest.approx([4 / 3 + 2.0])
    batches = (100 - 4 / 3 - 2) / 10
    assert found.utilizations == pytest.approx([batches * 9 / 100], abs=1e-3), "of the last batch its part of c"


def test_an_absence_is_charged_to_the_fault_before_and_only_within_the_window():
    """Two of three hosts are down from 50 to 60, and both still at the end of the window, at 100."""
    found = replayed(away(60.0, 500.0, from_s=[40.0, 50.0]), 40.0, 50.0, share=0.0)
    assert found.lost_s[0] == pytest.approx([10 / 3, 10 * 2 / 3 + 40 / 3])


def test_idle_time_is_not_missed():
    """Batches of 4 s each 10 s: a host that is down between two of them costs nothing."""
    work = MicroBatches(ONE, np.array([4.0]), interval_s=10.0, downtimes=away(9.0, from_s=[5.0]))
    found = replay(work, Faults(np.array([[5.0]]), np.zeros((1, 1)), np.zeros((1, 1))), 100.0, 0.0 * ONE)
    assert found.lost_s[0] == pytest.approx([0.0])
    assert found.utilizations == pytest.approx([0.9])


HOSTS, RATE, COST_S, RUNS, LONG_S, BEFORE_S = 4, 0.08, 0.5, 300, 1200.0, 300.0


def mean_over_poisson_faults(interval_s: float, away_s: float, share: float) -> tuple[float, float]:
    """Mean utilization and its standard error; each host is struck by a Poisson process, also while it is down."""
    rng, each = np.random.default_rng(5), round(1.7 * RATE / HOSTS * (LONG_S + BEFORE_S))
    struck_s = np.cumsum(rng.exponential(HOSTS / RATE, (RUNS, HOSTS, each)), axis=2) - BEFORE_S
    assert struck_s[:, :, -1].min() > LONG_S
    struck_s = struck_s.reshape(RUNS, -1)
    given = HostDowntimes(HOSTS, np.repeat(np.arange(HOSTS), each), struck_s, struck_s + away_s)
    work = MicroBatches(np.full(RUNS, COST_S), np.array([interval_s]), lost_shares=share, downtimes=given)
    faults = Faults(np.sort(struck_s, axis=1), np.zeros(struck_s.shape), np.zeros(struck_s.shape))
    found = replay(work, faults, LONG_S, np.full(RUNS, -BEFORE_S)).utilizations
    return float(found.mean()), float(found.std()) / RUNS**0.5


def expected(interval_s: float, away_s: float) -> float:
    """The mean with the share that is missing alone.

    A host is down at a moment if it was struck in the last A seconds, so that it is there with probability
    exp(-L A / n). The pace is the share of hosts that are there, and of each period c does not count.
    """
    return (1 - COST_S / interval_s) * exp(-RATE * away_s / HOSTS)


def in_long_downtimes(interval_s: float, away_s: float) -> float:
    """The mean with the work that faults take back too, if downtimes last for many batches.

    While k hosts are there, work is done at k / n of the pace and L n / k faults strike in a second of work. Each takes
    1 / n of the work since the last checkpoint, as in `partial_rollback`.
    """
    there, total = exp(-RATE * away_s / HOSTS), 0.0
    for k in range(1, HOSTS + 1):
        rate, pace = RATE * HOSTS / k, k / HOSTS
        useful = partial_rollback.utilization(rate, COST_S, 0.0, interval_s, 1 / HOSTS)
        total += comb(HOSTS, k) * there**k * (1 - there) ** (HOSTS - k) * pace * useful
    return total


@pytest.mark.parametrize(("interval_s", "away_s"), [(10.0, 9.0), (5.0, 30.0)])
def test_over_poisson_faults_the_share_that_is_missing_is_that_of_the_absent_hosts(interval_s, away_s):
    mean, error = mean_over_poisson_faults(interval_s, away_s, share=0.0)
    assert mean == pytest.approx(expected(interval_s, away_s), abs=4 * error + COST_S / LONG_S)
    assert error < 0.002


@pytest.mark.extended
def test_over_poisson_faults_the_mean_is_partial_rollback_at_the_pace_of_the_hosts_that_are_there():
    mean, error = mean_over_poisson_faults(3.0, 25.0, share=1 / HOSTS)
    assert mean == pytest.approx(in_long_downtimes(3.0, 25.0), abs=4 * error)


class Planted(HostDowntimes):
    """HostDowntimes with an error: hosts are down twice as long, or have half their share."""

    longer, share = 1.0, 1.0

    def __init__(self, hosts, struck, from_s, until_s) -> None:
        starts_s = np.asarray(from_s)
        super().__init__(round(hosts / self.share), struck, from_s, starts_s + self.longer * (until_s - starts_s))


@pytest.mark.extended
@pytest.mark.parametrize(("longer", "share"), [(2.0, 1.0), (1.0, 0.5)], ids=["away time doubled", "share halved"])
def test_planted_errors_miss_the_formulas(longer, share, monkeypatch):
    monkeypatch.setattr(Planted, "longer", longer)
    monkeypatch.setattr(Planted, "share", share)
    monkeypatch.setitem(globals(), "HostDowntimes", Planted)
    with pytest.raises(AssertionError):
        test_over_poisson_faults_the_share_that_is_missing_is_that_of_the_absent_hosts(10.0, 9.0)
    with pytest.raises(AssertionError):
        test_over_poisson_faults_the_mean_is_partial_rollback_at_the_pace_of_the_hosts_that_are_there()
    with pytest.raises(AssertionError):
        test_a_fault_costs_what_the_host_had_done_and_what_it_does_not_do_while_it_is_away()
