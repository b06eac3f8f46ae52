"""Survivors go on as far as they can: what holds of them whenever only the return of a host can bring them further."""

from collections import Counter

import pytest

from testbed.core.by_batch.cutting import Batching
from testbed.core.by_batch.tentative import TentativeIntake
from testbed.core.coordinator.absent_partitions import AbsentPartitions
from testbed.core.partition.partition_status import finished
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES
from testbed.simulation import Simulation
from tests.unit.testbed.campaigns import first_and_rest, parts
from tests.unit.testbed.recovery.runs import faults
from tests.unit.testbed.runs import oracle
from tests.unit.testbed.small_flows import laid_out

FLOWS = ("tiny", "joined", "windowed", "spread")
MOST_STEPS = 8000


class Waiting(Simulation):
    """Hosts stay away until nothing else can happen. Then all sources that are up have ended, and every partition that
    is neither absent nor down has ended the last batch of all inputs that are not absent.

    Partitions that come back after a sender has gone on are an exception: what this sender has sent before is
    tentative, so it is not sent again.

    met   how often who was found how
    """

    def __init__(self, flow, strategy, seed):
        layout, inputs = laid_out(flow, Delivery.EXACTLY_ONCE)
        options = {"faults": faults(flow, seed), "slots": 2 + seed % 2, "batching": Batching(5, 1 + seed % 2)}
        recovery, expected = STRATEGIES[strategy](), oracle(flow)
        options |= {"recovery": recovery, "expected": expected, "tentative": True, "returns": 0.0}
        super().__init__(layout, PROTOCOLS["batch-aligned"], inputs, seed, **options)
        self.met = Counter()

    def _return(self):
        down, lives, absent = self.coordinator.down, self.coordinator.lives, self.coordinator.absent
        hosted = {number: each for worker in self.workers for number, each in worker.partitions.items()}
        up = {number: each for number, each in hosted.items() if number not in down and each.epoch == lives[number]}
        for number in up.keys() - absent:
            self._look_at(up, number, {channel.sender for channel in self.layout.partitions[number].inputs}, absent)
        super()._return()

    def _look_at(self, up, number, senders, absent):
        partition, present = up[number], [up[sender] for sender in senders - absent]
        name = partition.layout.name
        if not senders:
            assert partition.source_input.ended, f"source {name} waits"
            return
        reached = {each.batch for each in present}
        if not partition.tentative and any(each.tentative for each in present):
            self.met["back too late"] += 1
            assert partition.batch < max(reached), f"{name} took in what is tentative and is not"
            return
        assert reached == {partition.batch}, f"{name} waits at {partition.batch}, its senders are at {reached}"
        if senders & absent:
            assert partition.tentative or finished(partition), f"{name} lacks input, and is exact and not at its end"
            self.met["tentative" if partition.tentative else "finished before"] += 1


def seen(flow, strategy, seeds):
    """What was met in runs of these seeds, each of which put out all that is exact."""
    met = Counter()
    for seed in seeds:
        run = Waiting(flow, strategy, seed)
        assert run.run(MOST_STEPS).published == oracle(flow), f"seed {seed}"
        met += run.met
    return met


@pytest.mark.parametrize("seeds", first_and_rest(range(6), 2))
@pytest.mark.parametrize("flow", FLOWS)
def test_survivors_go_on_to_the_end_of_what_they_have(flow, seeds):
    assert seen(flow, "passive", seeds)["tentative"]


@pytest.mark.extended
@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("part", parts(4))
def test_survivors_go_on_in_more_schedules(flow, part):
    seen(flow, "passive", range(6 + 8 * part, 14 + 8 * part))


def waits_for_all(intake, real=TentativeIntake._begin_batch):
    intake._absent, kept = frozenset(), intake._absent
    real(intake)
    intake._absent = kept


def only_who_is_down(of, down):
    return frozenset(down)


PLANTS = {
    "nobody goes on": (TentativeIntake, "_begin_batch", waits_for_all, "waits at"),
    "who has only absent inputs is waited for": (AbsentPartitions, "absent", only_who_is_down, "waits at"),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_an_error_is_noticed(plant, monkeypatch):
    owner, name, wrong, expected = PLANTS[plant]
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError, match=expected):
        sum((seen(flow, "passive", range(6)) for flow in FLOWS), Counter())
