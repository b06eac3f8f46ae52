"""Who sends to a query that is up does not wait for receivers that wait for lost partitions."""

from dataclasses import replace

import pytest

from testbed.core.by_batch.sending import BatchSending
from testbed.core.coordinator.recoveries_underway import RecoveriesUnderway
from testbed.core.partition.partition import PartitionLimits
from testbed.recovery import Blocking, QueryCentric
from testbed.simulation.invariants import InvariantBroken
from tests.unit.testbed.campaigns import first_and_rest, quick
from tests.unit.testbed.recovery.bursts import (
    PARTITIONS_EACH,
    WORKERS,
    BurstSimulation,
    Late,
    burst_of_fifteen,
    fifteen_in_bursts,
)

# So that a sender soon waits for a receiver that takes nothing.
TIGHT = PartitionLimits(frames_in_flight=2)
SMALL = PartitionLimits(frames_in_flight=2, records_per_message=1, retained_bytes=2000)


class SlowRestores(BurstSimulation):
    """Who comes at once for a worker follows orders when nothing else can happen any more. Before that, it looks."""

    held = False

    def _join(self):
        super()._join()
        self.held = self.outcome.crashes > 0

    def _possible(self):
        events = super()._possible()
        if self.held and all(event in (self._return, self._round_due, self._timer) for event, *_ in events):
            self.look(set(range(len(self.layout.partitions))) - self._running())
            self.held = False
            return super()._possible()
        return events

    def _queues(self, worker):
        queues, is_new = super()._queues(worker), int(worker.name.rpartition("-")[2]) >= WORKERS
        return queues[1:] if self.held and is_new else queues

    def _running(self):
        """The partitions that are where the coordinator has them, and do not wait to go on."""
        lives = self.coordinator.lives
        hosted = [(number, each) for worker in self.workers for number, each in worker.partitions.items()]
        return {number for number, each in hosted if each.running and each.epoch == lives[number]}


def simulated(recovery, seed, kind=BurstSimulation, limits=TIGHT):
    faults = burst_of_fifteen(seed)
    if kind is SlowRestores:
        faults = [replace(each, late=False) for each in faults[:1]]
    return fifteen_in_bursts(seed, kind=kind, faults=faults, recovery=recovery, limits=limits)


STRATEGIES = {
    "query-centric": lambda: QueryCentric(PARTITIONS_EACH, "best-density"),
    "blocking": lambda: Blocking(by_room=True),
}


@pytest.mark.parametrize("limits", quick([TIGHT, SMALL], [TIGHT]), ids=["two frames", "of one record, which spill"])
@pytest.mark.parametrize("kind", [BurstSimulation, SlowRestores])
@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("seeds", first_and_rest(range(12), 1))
def test_a_query_that_depends_on_nothing_lost_is_not_held_up(seeds, name, kind, limits):
    for seed in seeds:
        run = simulated(STRATEGIES[name](), seed, kind, limits)
        assert run.run(60_000).published == run.wanted, f"seed {seed}"


def nobody(recoveries, lives):
    return set()


def ignored(sending, receivers):
    sending.unawaited = frozenset(n for n, link in sending._links.items() if link.channel.receiver in receivers)


PLANTS = {
    "a sender waits for all": (BatchSending, "do_not_wait_for", ignored),
    "who is being restored counts as back": (RecoveriesUnderway, "restoring", nobody),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_sender_that_waits_is_noticed(plant, monkeypatch):
    monkeypatch.setattr(*PLANTS[plant])
    with pytest.raises(Late, match="q"):
        [simulated(STRATEGIES["query-centric"](), seed, SlowRestores).run(60_000) for seed in range(12)]


def test_a_sender_that_did_not_hear_is_noticed(monkeypatch):
    monkeypatch.setattr(BatchSending, "do_not_wait_for", lambda sending, receivers: None)
    with pytest.raises(InvariantBroken, match="does not wait on"):
        simulated(STRATEGIES["query-centric"](), 0).run(60_000)
