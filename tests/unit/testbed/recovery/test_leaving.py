"""A partition that a recovery stops has no state until it is restored, and things go on happening to it."""

import pytest

from testbed.core.partition.partition import Partition
from testbed.simulation.workers import SimulatedWorker
from tests.unit.testbed.planting import assert_noticed, notice_of
from tests.unit.testbed.runs import oracle, simulated

FLOW, SEEDS = "joined", range(6)
PROTOCOLS = ("coordinated", "uncoordinated", "batch-aligned")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_frames_arrive_at_a_partition_that_has_left_its_life_and_is_not_restored_yet(protocol, monkeypatch):
    stopped, arrived = dict[Partition, int](), list[Partition]()

    def leave(worker, number, real=SimulatedWorker.leave):
        partition = real(worker, number)
        if partition is not None:
            stopped[partition] = partition.epoch
        return partition

    def on_frame(partition, frame, real=Partition.on_frame):
        arrived.extend([partition] if stopped.get(partition) == partition.epoch else [])
        real(partition, frame)

    monkeypatch.setattr(SimulatedWorker, "leave", leave)
    monkeypatch.setattr(Partition, "on_frame", on_frame)
    for seed in SEEDS:
        assert simulated(FLOW, protocol, seed).run().published == oracle(FLOW)
    assert arrived


def goes_on(partition, real=Partition.leave):
    real(partition)
    partition.running = True


def test_a_partition_that_goes_on_without_its_state_is_noticed(monkeypatch):
    def notice(seed):
        return notice_of(simulated(FLOW, "coordinated", seed).run, FLOW, AttributeError)

    assert_noticed(monkeypatch, (Partition, "leave", goes_on, "AttributeError"), notice, SEEDS)
