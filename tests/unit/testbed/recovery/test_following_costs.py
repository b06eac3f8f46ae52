"""Costs are measured in a steady state only, and queries that wait are planned again by them."""

from types import SimpleNamespace

import pytest

from testbed.core.control import Ready
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.effects import Order
from testbed.protocols import PROTOCOLS
from testbed.recovery import QueryCentric
from testbed.runtime.network.messages import Cost, SlotStatus
from testbed.runtime.server.following_costs import FollowingCosts
from testbed.runtime.server.steady_state import SteadyState
from tests.unit.testbed.queries.hashtag_queries import TWO, laid_out

LAYOUT = laid_out(TWO)
EVERYONE = range(len(LAYOUT.partitions))
WORKERS = ("a", "b")


class Run:
    """A coordinator whose partitions are ready at once, on two workers of which one can be lost."""

    def __init__(self, cores=None, capacity=None):
        self.strategy = QueryCentric(capacity, cores=cores)
        self.coordinator = Coordinator(LAYOUT, PROTOCOLS["batch-aligned"], len(WORKERS), recovery=self.strategy)
        self.guests = {name: SimpleNamespace(status=SlotStatus(-1)) for name in WORKERS}
        self.costs = FollowingCosts(LAYOUT, self.coordinator, self.strategy, self.guests, {})
        self.now_s = 100.0
        for name in WORKERS:
            self.coordinator.on_joined(name)

    def be_ready(self):
        for effect in self.coordinator.take_effects():
            if isinstance(effect, Order) and type(effect.message).__name__ in ("Restore", "Rejoin"):
                self.coordinator.on_message(Ready(effect.partition, effect.message.epoch, {}))

    def on(self, worker):
        return [
            n for n in EVERYONE if n not in self.coordinator.down and self.coordinator.placement.worker_of(n) == worker
        ]

    def go(self, seconds, per_record_s=0.0, records=1.0, caught_up=True):
        """Time goes on; each partition processes so many records a second, which take so long."""
        for _ in range(round(seconds * 2)):
            self.now_s += 0.5
            for name, guest in self.guests.items():
                found = {}
                for number in self.on(name):
                    known = guest.status.costs.get(number, Cost(False, 0.0, 0.0, 0, 0, 0))
                    more = records / 2
                    found[number] = Cost(
                        False, known.processing_s + more * per_record_s, 0.0, known.records + more, 0, 0
                    )
                guest.status = SlotStatus(self.coordinator.epoch, caught_up=caught_up, costs=found)
                self.costs.note(name, guest.status, self.now_s)
            self.costs.on_clock(self.now_s)

    def lose(self, worker):
        self.coordinator.on_lost(worker)
        del self.guests[worker]
        self.costs.forget(worker)


def started(**options):
    run = Run(**options)
    run.be_ready()
    return run


def test_before_partitions_are_ready_nothing_is_measured():
    run = Run()
    run.go(5, 0.2)
    assert run.costs.cores == {}
    run.be_ready()
    run.go(20, 0.2)
    assert run.costs.cores == pytest.approx(dict.fromkeys(EVERYONE, 0.2))


def test_what_is_measured_while_partitions_catch_up_does_not_count():
    run = started(capacity=5)
    run.go(10, 0.1)
    run.lose("b")
    run.be_ready()
    run.go(6, 0.1, records=10, caught_up=False)
    run.go(5, 0.1, records=10)
    assert run.costs.cores == pytest.approx(dict.fromkeys(EVERYONE, 0.1))
    run.go(20, 0.15)
    assert run.costs.cores == pytest.approx(dict.fromkeys(EVERYONE, 0.15))


def test_nothing_is_measured_from_before_a_disturbance_to_after_it():
    run = started()
    run.go(10, 0.1)
    run.go(2, 0.1, records=10, caught_up=False)
    run.go(6, 0.15)
    assert run.costs.cores == pytest.approx(dict.fromkeys(EVERYONE, 0.15))


def test_a_backlog_lasts_as_long_as_a_partition_was_away():
    run = started(capacity=3)
    run.go(10, 0.1)
    run.lose("b")
    run.go(30, 0.1)  # two of the five have no room, and the others go on
    assert len(run.coordinator.down) == 2
    run.guests["c"] = SimpleNamespace(status=SlotStatus(-1))
    run.coordinator.on_joined("c")
    run.be_ready()
    assert not run.coordinator.down
    run.go(25, 0.1, records=10)
    assert run.costs.cores == pytest.approx(dict.fromkeys(EVERYONE, 0.1))
    run.go(20, 0.15)
    assert run.costs.cores == pytest.approx(dict.fromkeys(EVERYONE, 0.15))


def test_a_partition_downstream_of_a_lost_one_keeps_its_cost():
    run = started(capacity=3)
    run.go(10, 0.1)
    run.lose("b")
    run.go(20, 0.3)
    steady = SteadyState(LAYOUT, run.coordinator, run.guests)
    stalled = set(EVERYONE) - steady.running
    assert run.coordinator.down <= stalled
    assert {n for n, cost in run.costs.cores.items() if cost == pytest.approx(0.1)} == stalled
    assert {n for n, cost in run.costs.cores.items() if cost == pytest.approx(0.3)} == steady.running


def test_queries_that_wait_get_room_once_partitions_cost_less():
    run = started(cores=0.95)
    run.go(20, 0.3)
    run.lose("b")
    run.go(20, 0.3)
    waiting = run.coordinator.down
    assert waiting
    asked = []
    real = run.coordinator.restore_what_can_be
    run.coordinator.restore_what_can_be = lambda: asked.append(run.now_s) or real()
    run.go(20, 0.3)
    assert asked == []  # nothing has changed
    run.go(20, 0.02)
    assert run.coordinator.down < waiting
    assert asked
