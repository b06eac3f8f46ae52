"""Batches of tasks on hosts that die one by one: by hand, and in the mean over Poisson faults against formulas."""

from __future__ import annotations

from math import exp, expm1

import numpy as np
import pytest

from models.replay.process import Faults, ReplayResult, replay
from models.replay.task_batches import Stages, Strike, TaskBatches
from tests.unit.models.replay.keeping_hosts import KeepingHosts

ONE = np.ones(1)
LONG_AWAY_S = 1e6


WARM, USUAL = np.zeros((1, 2)), np.ones((1, 2))


def strike(*hosts: int, back_s: float = LONG_AWAY_S, cold_s=WARM, pace=USUAL) -> Strike:
    return Strike(np.isin(np.arange(3), hosts), back_s * ONE, np.array(cold_s), np.array(pace))


def replayed(*strikes: tuple[float, Strike], window_s=200.0, **given) -> ReplayResult:
    """Batches of 7 s that follow each other from 0 on: six tasks of 2 s on three hosts, three of 2 s, and c of 1 s."""
    given = {"stages": Stages((6, 3), (4 / 7, 2 / 7)), "hosts": 3, "strikes": [each for _, each in strikes]} | given
    struck_s = np.array([[at_s for at_s, _ in strikes]])
    ready_s = [3.0 if each.hosts is None else 0.0 for _, each in strikes]
    faults = Faults(struck_s, np.array([ready_s]), np.zeros(struck_s.shape))
    return replay(TaskBatches(ONE, np.array([7.0]), **given), faults, window_s, 0.0 * ONE)


def lost(*strikes: tuple[float, Strike], **given) -> list[float]:
    """By fault, with a window that ends with the first batch: what comes later is not charged."""
    return replayed(*strikes, **given).lost_s[0].tolist()


def test_without_faults_a_batch_is_useful_but_for_its_checkpoint():
    assert replayed(window_s=70.0).utilizations == pytest.approx([6 / 7])


def test_a_host_takes_its_task_and_the_output_of_those_that_it_had_done():
    """At 3 host 0 has done one task, and is at another. From 4 to 6 two hosts do these two, and the others until 10."""
    assert lost((3.0, strike(0)), window_s=11.0) == pytest.approx([4.0])


def test_the_last_host_holds_all_that_it_did_while_others_were_away():
    """At 5 host 1 takes two tasks and the one that it is at. Host 2 has two, is at a third, and does three from 6 on.

    A model in which each host holds a third of what is done takes a third of the batch, and has it done at 17.
    """
    assert lost((3.0, strike(0)), (5.0, strike(1)), window_s=19.0) == pytest.approx([12.0, 0.0])


def test_a_host_that_dies_in_the_last_stage_takes_what_that_stage_reads():
    """At 5 two tasks of the last stage go on until 6. Until 8 two tasks of the first one are done again."""
    assert lost((5.0, strike(0)), window_s=11.0) == pytest.approx([4.0])


def test_results_that_are_out_stay():
    """Six tasks of 1 s each in the last stage. At 5.5 three are done: the others, and two of the first, are done again.

    Hosts 1 and 2 end theirs at 6 and do the two of the first stage until 8, and the one that is left until 9.
    """
    found = lost((5.5, strike(0)), stages=Stages((6, 6), (4 / 7, 2 / 7)), window_s=10.0)
    assert found == pytest.approx([3.0])


def test_output_that_nobody_needs_any_more_is_not_made_again():
    """At 6.5 all tasks are done, and the checkpoint is taken: the batch ends at 7. The next one has two hosts.

    Six tasks on two hosts take 6 s and three 4 s, where they took 6 s together.
    """
    assert lost((6.5, strike(0)), window_s=7.0) == pytest.approx([0.0])
    assert lost((6.5, strike(0)), window_s=18.0) == pytest.approx([4.0])


def test_a_host_that_is_back_is_cold_and_the_others_wait_for_it():
    """At 3.5 two tasks are left of host 0, which is back at 4. It does one until 9, and another host one until 6.

    The last stage then begins at 9, and takes 2 s on two hosts and 6 s on the cold one.
    """
    given = strike(0, back_s=4.0, cold_s=[(3.0, 4.0)])
    assert lost((3.5, given), window_s=16.0) == pytest.approx([9.0])


def test_a_host_is_cold_once_in_each_stage():
    """It is back when the second batch begins, whose first task it does in 5 s. The other five are done by 13.

    Of the third batch all tasks take 2 s.
    """
    given = strike(0, back_s=7.0, cold_s=[(3.0, 0.0)])
    assert lost((6.5, given), window_s=100.0) == pytest.approx([2.0])


def test_while_a_host_is_away_tasks_take_their_time():
    """From 4 on two hosts do two tasks in 1 s each, until 5, and then three in 4 s each, until 13."""
    given = strike(0, pace=[(0.5, 2.0)])
    assert lost((3.0, given), window_s=14.0) == pytest.approx([7.0])


def test_a_fault_on_the_whole_query_takes_the_whole_batch():
    """At 3 it is cut off. From 6 to 13 it is done again."""
    found = replayed((3.0, Strike(None, ONE, WARM, USUAL)), window_s=13.0)
    assert found.lost_s[0] == pytest.approx([3.0])
    assert found.down_s[0] == pytest.approx([3.0])
    assert found.utilizations == pytest.approx([6 / 13])


@pytest.mark.parametrize("restart_s", [5.0, 3.0, 1.0])
def test_a_second_fault_on_the_whole_query_begins_its_restart_again(restart_s):
    """At 3 the batch is cut off, at 4 the restart of 3 s, in which nothing was done. The batch takes 7 s after it."""
    whole = Strike(None, ONE, WARM, USUAL)
    ends_s = 4.0 + restart_s + 7.0
    faults = Faults(np.array([[3.0, 4.0]]), np.array([[3.0, restart_s]]), np.zeros((1, 2)))
    work = TaskBatches(ONE, np.array([7.0]), Stages((6, 3), (4 / 7, 2 / 7)), hosts=3, strikes=[whole, whole])
    found = replay(work, faults, ends_s, 0.0 * ONE)
    assert found.down_s.sum() == pytest.approx(1.0 + restart_s)
    assert found.lost_s.sum() == pytest.approx(3.0)
    assert found.utilizations == pytest.approx([6 / ends_s])


def test_all_time_is_accounted_for():
    rng = np.random.default_rng(2)
    struck_s = np.sort(rng.uniform(0, 400, 12))
    strikes = [
        Strike(np.arange(3) == host, at_s + rng.uniform(3, 12, 50), rng.uniform(0, 4, (50, 2)), np.ones((50, 2)))
        for at_s, host in zip(struck_s, rng.integers(0, 3, 12), strict=True)
    ]
    work = TaskBatches(
        np.zeros(50), np.array([8.0]), Stages((6, 6), (0.6, 0.3)), hosts=3, strikes=strikes, interval_s=9.0
    )
    nothing = np.zeros((50, 12))
    found = replay(work, Faults(np.tile(struck_s, (50, 1)), nothing, nothing), 400.0, np.zeros(50))
    assert found.utilizations * 400.0 + found.lost_s.sum(axis=1) == pytest.approx(np.full(50, 400.0))
    moments_s = np.linspace(0.0, 400.0, 81)
    assert found.useful_by(moments_s)[-1] == pytest.approx(found.utilizations.mean() * 400.0)


RATE, RUNS, LONG_S, BEFORE_S = 0.05, 600, 60.0, 40.0


def mean_over_poisson_faults(stages: Stages, length_s: float, *, hosts: int, away_s: float) -> tuple[float, float]:
    """Mean utilization and its standard error; each host is struck by a Poisson process, also while it is away."""
    rng, count = np.random.default_rng(5), round(4 * RATE * (LONG_S + BEFORE_S))
    struck_s = np.cumsum(rng.exponential(1 / RATE, (RUNS, count)), axis=1) - BEFORE_S
    assert struck_s[:, -1].min() > LONG_S
    targets, warm = rng.integers(0, hosts, struck_s.shape), np.zeros((RUNS, len(stages.tasks)))
    usual = np.ones(warm.shape)
    on = [targets[:, [number]] == np.arange(hosts) for number in range(count)]
    strikes = [Strike(hosts_s, at_s + away_s, warm, usual) for hosts_s, at_s in zip(on, struck_s.T, strict=True)]
    work = TaskBatches(np.zeros(RUNS), np.array([length_s]), stages, hosts=hosts, strikes=strikes)
    nothing = np.zeros(struck_s.shape)
    found = replay(work, Faults(struck_s, nothing, nothing), LONG_S, np.full(RUNS, -BEFORE_S)).utilizations
    return float(found.mean()), float(found.std()) / RUNS**0.5


def on_one_host(first_s: float, tasks: int, task_s: float) -> float:
    """Utilization of one host that is back at once, with a first stage of one length and tasks in the last one.

    The first stage has to be done in one go: (exp(L A) - 1) / L. A task of the last stage needs its output: if a fault
    strikes amid it, A + t have to be done in one go. So it takes (1 - exp(-L t)) (1 / L + (exp(L (A + t)) - 1) / L).
    """
    again_s = expm1(RATE * (first_s + task_s)) / RATE
    each_s = -expm1(-RATE * task_s) * (1 / RATE + again_s)
    return (first_s + tasks * task_s) / (expm1(RATE * first_s) / RATE + tasks * each_s)


@pytest.mark.parametrize(("first", "tasks"), [(4.0, 4), (1.0, 7)])
def test_over_poisson_faults_one_host_does_stages_again_as_by_hand(first, tasks):
    length_s = first + tasks
    mean, error = mean_over_poisson_faults(
        Stages((5, tasks), (first / length_s, tasks / length_s)), length_s, hosts=1, away_s=0.0
    )
    assert mean == pytest.approx(on_one_host(first, tasks, 1.0), abs=4 * error)
    assert error < 0.008


def test_over_poisson_faults_the_share_that_is_missing_is_that_of_the_absent_hosts():
    """A host is away at a moment if it was struck in the last A seconds: it is there with probability exp(-L A / n).

    With many short tasks in the one stage hardly anything else is lost: half a task for each fault, and the end of a
    batch, where hosts wait for each other's last tasks.
    """
    hosts, away_s, length_s, tasks = 4, 9.0, 12.0, 48
    mean, error = mean_over_poisson_faults(Stages((tasks,), (1.0,)), length_s, hosts=hosts, away_s=away_s)
    task_s = length_s * hosts / tasks
    lost_too = RATE * task_s / 2 / hosts + task_s / 2 / length_s
    assert mean == pytest.approx(exp(-RATE * away_s / hosts) - lost_too, abs=4 * error + lost_too)
    assert error < 0.006


class SoonBack(TaskBatches):
    """Hosts are away half as long."""

    def until(self, ready_s, up_s, fault_s, end_s):
        spell = super().until(ready_s, up_s, fault_s, end_s)
        at_s = fault_s[:, np.newaxis]
        self._free_s = np.where(self._free_s - at_s > 8.0, self._free_s - 4.5, self._free_s)
        return spell


def test_planted_errors_miss_the_formulas(monkeypatch):
    monkeypatch.setitem(globals(), "TaskBatches", KeepingHosts)
    for noticed in (
        test_the_last_host_holds_all_that_it_did_while_others_were_away,
        lambda: test_over_poisson_faults_one_host_does_stages_again_as_by_hand(4.0, 4),
    ):
        with pytest.raises(AssertionError):
            noticed()
    monkeypatch.setitem(globals(), "TaskBatches", SoonBack)
    with pytest.raises(AssertionError):
        test_over_poisson_faults_the_share_that_is_missing_is_that_of_the_absent_hosts()
