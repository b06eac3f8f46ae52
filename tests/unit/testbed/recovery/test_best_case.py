"""The best case of a burst: as many workers stand by as die. Held against recovery query by query, and blocking."""

from random import Random

import pytest

from testbed.core.coordinator.coordinator import Coordinator
from testbed.protocols import PROTOCOLS
from testbed.recovery import Blocking, QueryCentric
from tests.unit.testbed.campaigns import quick
from tests.unit.testbed.queries.hashtag_queries import FIFTEEN, TWO, laid_out
from tests.unit.testbed.recovery.bursts import BurstSimulation, arrivals_after, available, burst

SHAPES = {"topology 1": (TWO, 5, 1, 3), "topology 2": (FIFTEEN, 10, 4, 8)}  # workers, their capacity, how many die


class Waited(Exception):
    """A query waited for a worker although one stood by for each that died."""


class BestCase(BurstSimulation):
    """Looks, at every arrival, whether any query has waited for it."""

    def _return(self):
        waiting = set(self.wanted_queries) - set(available(self.layout, self.coordinator.down))
        if waiting:
            raise Waited(", ".join(sorted(waiting)))
        super()._return()

    @property
    def wanted_queries(self):
        return available(self.layout, frozenset())


def shares(spec, workers, capacity, lost):
    """By arrival, how many queries are available: in the best case, query by query, and blocking."""
    found = []
    for recovery, standby in (
        (QueryCentric(capacity), len(lost)),
        (QueryCentric(capacity), 0),
        (Blocking(by_room=True), 0),
    ):
        _, queries = arrivals_after(laid_out(spec), recovery, workers, lost, standby)
        found.append([len(each) for each in queries])
    return found


def in_order(best, by_query, blocking):
    return all(a >= b >= c for a, b, c in zip(best, by_query, blocking, strict=True))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("seed", quick(range(6), range(2)))
def test_at_every_arrival_the_best_case_has_the_most_queries_and_blocking_the_fewest(name, seed):
    spec, workers, capacity, dying = SHAPES[name]
    found = shares(spec, workers, capacity, Random(seed).sample(range(workers), dying))
    assert in_order(*found)
    assert set(found[0]) == {len(spec.reads)}
    assert found[0][0] > found[2][0]


def test_an_order_that_does_not_hold_is_noticed():
    best, by_query, blocking = shares(*SHAPES["topology 2"][:3], range(8))
    assert not in_order(by_query, best, blocking)
    assert not in_order(best, blocking, by_query)


def simulated(name, seed, standby):
    spec, workers, capacity, dying = SHAPES[name]
    faults = burst(seed, dying, 80 if spec is TWO else 1200)
    return BestCase(spec, seed, workers, capacity, "best-density", faults, standby=standby)


@pytest.mark.parametrize(("name", "seeds"), [("topology 1", 6), ("topology 2", 1)])
def test_in_the_best_case_no_query_waits_and_nothing_is_lost(name, seeds):
    for seed in range(seeds):
        simulation = simulated(name, seed, SHAPES[name][-1])
        assert simulation.run().published == simulation.wanted, f"seed {seed}"
        assert simulation.outcome.crashes >= 2


def test_a_query_that_waits_is_noticed():
    with pytest.raises(Waited):
        simulated("topology 1", 0, standby=0).run()


def hosted(recovery, order, standby=()):
    """Which host has which partitions at the start, if workers join from hosts in this order."""
    layout = laid_out(FIFTEEN)
    coordinator = Coordinator(layout, PROTOCOLS["batch-aligned"], 10, recovery=recovery, standby_hosts=standby)
    for number, host in enumerate(order):
        coordinator.on_joined(f"slot-{number}", host)
    workers = coordinator.placement.workers
    return {worker.host: coordinator.placement.partitions_of(name) for name, worker in workers.items()}


HOSTS = [f"127.0.1.{number}" for number in range(2, 20)]
STRATEGIES = {"query-centric": QueryCentric, "blocking": lambda capacity: Blocking(by_room=True)}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_hosts_have_the_same_partitions_in_whatever_order_they_come(strategy):
    first = hosted(STRATEGIES[strategy](4), HOSTS[:10])
    assert first[HOSTS[0]] == {0, 10, 20, 30}
    assert first[HOSTS[9]] == {9, 19, 29}
    for seed in range(5):
        assert hosted(STRATEGIES[strategy](4), Random(seed).sample(HOSTS[:10], 10)) == first


@pytest.mark.parametrize("seed", range(5))
def test_hosts_that_stand_by_have_nothing_at_the_start(seed):
    found = hosted(QueryCentric(4), Random(seed).sample(HOSTS, 18), standby=HOSTS[10:])
    assert {host for host, partitions in found.items() if partitions} == set(HOSTS[:10])
    assert {host: found[host] for host in HOSTS[:10]} == hosted(QueryCentric(4), HOSTS[:10])
