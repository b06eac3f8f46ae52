"""Copies that follow the load of a run: which rates count, what the journal tells, and output under a moving load."""

import selectors
import time
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from experiments.documents.parsing import parse
from experiments.errors import BadInput
from experiments.workloads.catalogue import NexmarkSpec
from experiments.workloads.window_tree import WindowTreeSpec
from journal.events.testbed import TESTBED, FellBack, PlanChanged
from journal.reader import events
from journal.writer import Journal
from models.replication.planners import PLANNERS
from testbed.core.by_batch.cutting import Batching
from testbed.core.by_batch.partition import is_muted
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery, Sink
from testbed.protocols import PROTOCOLS
from testbed.queries import dataflow
from testbed.recovery import PartiallyActive
from testbed.recovery.adaptation import Adaptation
from testbed.runtime.network.messages import SlotStatus
from testbed.runtime.network.wire import turn
from testbed.runtime.server.following_load import FollowingLoad, following_load
from testbed.simulation import Simulation
from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.queries.window_trees import SMALL, exact, inputs, laid_out
from tests.unit.testbed.recovery.coordinators import running
from tests.unit.testbed.recovery.moving_loads import BUDGET, LAYOUT, fidelity, rates, skewed
from tests.unit.testbed.runtime.backgrounds import AtOnce, Later
from tests.unit.testbed.small_job import JOB

EVERY_S = 5.0
RATIO = BUDGET / len(LAYOUT.partitions)


def tally(emitted, number, layout=LAYOUT):
    """A sink emits what it takes in, and sends nothing on."""
    sent = 0 if isinstance(layout.partitions[number].element, Sink) else emitted
    return {"records_in": emitted, "records_out": sent}


class Followed:
    """A run of figure 6 on two slots, with two that stand by, whose load is what a test says."""

    def __init__(self, folder, planner="structure-aware", planning=None):
        self.file = folder / "query.jsonl"
        self.coordinator = running(LAYOUT, PartiallyActive(RATIO, "greedy"), 2, standby=2, spare_lines=0)
        self.first = self.coordinator.copies.wanted
        adaptation = Adaptation(LAYOUT, planner, BUDGET, self.first)
        journal = Journal(self.file)
        self.following = FollowingLoad(LAYOUT, self.coordinator, adaptation, EVERY_S, planning or AtOnce(), journal)
        self.emitted = dict.fromkeys(range(len(LAYOUT.partitions)), 0.0)

    def run(self, now_s, weights, seconds=EVERY_S, without=()):
        """Partitions have emitted by these weights for some seconds, and it is this time."""
        for number, each in enumerate(LAYOUT.partitions):
            self.emitted[number] += seconds * rates(weights)[each.name]
        told = {number: tally(n, number) for number, n in self.emitted.items() if number not in without}
        halves = [{n: tally for n, tally in told.items() if n % 2 == half} for half in (0, 1)]
        self.following.on_clock(now_s, [SlotStatus(1, tallies=each) for each in halves])

    def told(self, kind):
        return [each for each in events(self.file, TESTBED) if isinstance(each, kind)] if self.file.exists() else []


@pytest.fixture
def followed(tmp_path):
    return Followed(tmp_path)


def test_copies_move_with_the_load(followed):
    for step, hot in enumerate([0, 0, 0, 12, 12]):
        followed.run(step * EVERY_S, skewed(hot))
    first, second = followed.told(PlanChanged)
    assert first.fidelity > first.fidelity_before + 0.05
    assert second.fidelity > second.fidelity_before + 0.3
    wanted = followed.coordinator.copies.wanted
    assert second.copied == tuple(LAYOUT.partitions[number].name for number in sorted(wanted))
    assert second.fidelity == pytest.approx(fidelity(wanted, skewed(12)))
    assert followed.coordinator.copies.of.keys() == wanted


def test_nothing_is_planned_before_it_is_time(followed):
    followed.run(0.0, skewed(0))
    followed.run(EVERY_S - 0.1, skewed(0))
    assert followed.coordinator.copies.wanted == followed.first
    followed.run(EVERY_S, skewed(0))
    assert followed.coordinator.copies.wanted != followed.first


@pytest.mark.parametrize("number", [0, len(LAYOUT.partitions) - 1])
def test_rates_that_are_not_all_known_change_nothing(followed, number):
    for step in range(4):
        followed.run(step * EVERY_S, skewed(0), without=[number] if step % 2 else ())
    assert not followed.told(PlanChanged)


def test_what_partitions_catch_up_with_after_a_recovery_is_no_rate(followed):
    followed.run(0.0, skewed(0))
    followed.coordinator.lives[3] += 1
    followed.run(EVERY_S, skewed(0))
    assert not followed.told(PlanChanged)
    followed.run(2 * EVERY_S, skewed(0))
    assert followed.told(PlanChanged)


def test_while_somebody_is_down_nothing_is_planned(followed):
    followed.run(0.0, skewed(0))
    followed.coordinator.on_lost("w0")
    followed.coordinator.on_lost("w1")
    followed.run(EVERY_S, skewed(0))
    followed.run(2 * EVERY_S, skewed(0))
    assert not followed.told(PlanChanged)


@pytest.mark.parametrize("busy", [0, 1])
def test_the_rate_of_a_sink_is_that_of_what_it_takes_in(busy):
    """Two sinks, one of which takes in nine times as much."""
    layout = lay_out(dataflow(parse(NexmarkSpec, {"query": "q1"}, "workload"), 2, Delivery.EXACTLY_ONCE))
    coordinator = running(layout, PartiallyActive(0.5, named=["out.0"]), 2, standby=2, spare_lines=0)
    told = []
    adaptation = SimpleNamespace(next=told.append)
    following = FollowingLoad(layout, coordinator, adaptation, EVERY_S, AtOnce(), None)
    for seconds in (0.0, EVERY_S):
        tallies = {
            each.number: tally(seconds * (9 if each.name.endswith(str(busy)) else 1), each.number, layout)
            for each in layout.partitions
        }
        following.on_clock(seconds, [SlotStatus(1, tallies=tallies)])
    (rates,) = told
    assert {name: rate for name, rate in rates.items() if name.startswith("out.")} == {
        f"out.{busy}": pytest.approx(9),
        f"out.{1 - busy}": pytest.approx(1),
    }


class OneAtATime(Later):
    """Refuses to plan while a plan is being made."""

    def submit(self, act, then):
        assert not self._left
        super().submit(act, then)


def test_one_plan_is_made_at_a_time(tmp_path):
    planning = OneAtATime()
    followed = Followed(tmp_path, planning=planning)
    for step in range(4):
        followed.run(step * EVERY_S, skewed(0))
    planning.go_on()
    planning.go_on()
    assert len(followed.told(PlanChanged)) == 1


def test_a_planner_that_cannot_plan_leaves_the_copies_where_they_are(tmp_path, monkeypatch):
    def refuse(_topology, _budget):
        raise BadInput("budget", 10, "one with fewer candidate plans")

    monkeypatch.setitem(PLANNERS, "dp", refuse)
    followed = Followed(tmp_path, "dp")
    for step in range(3):
        followed.run(step * EVERY_S, skewed(0))
    assert "fewer candidate plans" in followed.told(FellBack)[0].why
    assert followed.coordinator.copies.wanted == followed.first


ACTIVE = {"protocol": "batch-aligned", "recovery": "partially-active", "replication_ratio": 0.5, "adapt_every_s": 5.0}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"adapt_every_s": 0.0}, "adapt_every_s"),
        ({"replication_ratio": 1.0}, "adapt_every_s"),
        ({"replication_ratio": 0.0}, "adapt_every_s"),
        ({"recovery": "passive"}, "adapt_every_s"),
        ({"standby": 0}, "standby"),
    ],
)
def test_jobs_whose_plans_cannot_follow_the_load_are_refused(wrong, field):
    assert replace(JOB, **ACTIVE, standby=1).adapt_every_s == 5.0
    with pytest.raises(BadInput, match=field):
        replace(JOB, **{**ACTIVE, "standby": 1, **wrong})


def test_a_job_that_says_so_has_its_plans_made_in_a_thread(tmp_path):
    tree = {"workload": SMALL, "parallelism": 4, "slots": 2, "standby": 1, "store": str(tmp_path / "store")}
    job = replace(JOB, **ACTIVE, **tree)
    layout, selector, journal = job.layout(), selectors.DefaultSelector(), Journal(tmp_path / "query.jsonl")
    coordinator = running(layout, job.brought_back_by(), 2, standby=1, spare_lines=0)
    first = coordinator.copies.wanted
    with closing(following_load(job, layout, coordinator, selector, journal)) as following:
        for seconds in (0, 5):
            tallies = {
                each.number: tally(seconds * (99 if each.name in light(layout, first) else 1), each.number, layout)
                for each in layout.partitions
            }
            following.on_clock(float(seconds), [SlotStatus(1, tallies=tallies)])
        deadline_s = time.monotonic() + 60
        while coordinator.copies.wanted == first:
            assert time.monotonic() < deadline_s
            turn(selector, 0.1)
    assert light(layout, first) <= {layout.partitions[number].name for number in coordinator.copies.wanted}
    assert following_load(replace(job, adapt_every_s=None), layout, coordinator, selector, journal) is None


def light(layout, plan):
    """The partitions of the first operator that have no copy yet."""
    return {each.name for each in layout.partitions if each.operator == "window-1" and each.number not in plan}


# A whole run in simulation, from the moving load to the copies.

MOVING = WindowTreeSpec(window_s=2.0, slide_s=1.0, parallelism=(4, 2, 1), stream_seed=3, moves_every=120)
EVENTS, RATE, READ = 480, 60.0, 12
STEPS = 150  # from one plan to the next


class Following(Simulation):
    """A run whose plans follow the rates of its partitions, at equal numbers of steps."""

    def follow(self, journal):
        budget = len(self.coordinator.copies.wanted)
        adaptation = Adaptation(self.layout, "structure-aware", budget, self.coordinator.copies.wanted)
        parts = self.layout, self.coordinator, adaptation, STEPS, AtOnce(), journal
        self.following = FollowingLoad(*parts)
        return self

    def _possible(self):
        self.following.on_clock(self.outcome.steps, map(self._status, self.workers))
        self._coordinate()
        return super()._possible()

    def _status(self, worker):
        here = [each for each in worker.partitions.values() if not is_muted(each) and each.epoch >= 0]
        return SlotStatus(1, tallies={each.number: vars(each.tally) for each in here})


def follow(folder, seed):
    """A run to its end; returns it and its plans."""
    file, given = folder / f"{seed}.jsonl", inputs(MOVING, EVENTS, RATE, READ)
    options = {"standby": 2, "batching": Batching(10**9 // 4, 2)}
    recovery = PartiallyActive(0.5, "structure-aware")
    run = Following(laid_out(MOVING), PROTOCOLS["batch-aligned"], given, seed, recovery=recovery, **options)
    outcome = run.follow(Journal(file)).run(100_000)
    assert outcome.published == exact(MOVING, given), f"seed {seed}"
    plans = events(file, TESTBED) if file.exists() else []
    return run, outcome, [each for each in plans if isinstance(each, PlanChanged)]


@pytest.mark.parametrize("seeds", first_and_rest(range(3), 1))
def test_under_a_load_that_moves_plans_change_and_the_output_does_not(tmp_path, seeds):
    changes = 0
    for seed in seeds:
        run, outcome, plans = follow(tmp_path, seed)
        assert not outcome.restored
        assert run.checks.copies.compared
        changes += len(plans)
    assert changes >= len(seeds)
