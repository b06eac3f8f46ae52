"""A store that refuses objects of an output log gets them again, and what waits for it meanwhile is bounded."""

import pytest

from testbed.core.checkpoints import initial_line
from testbed.core.control import Go, Restore
from testbed.core.effects import Store, Tell
from testbed.core.partition.partition import Partition
from testbed.output_log import snapshots
from testbed.output_log.blocks import Block
from testbed.output_log.snapshots import LogSnapshots
from testbed.simulation.storage import Storage
from tests.unit.testbed.output_log.protocol_runs import simulated, wanted

REFUSALS, FEW = 20, 3  # one object is refused, and others may have been on their way


def waiting_at_most(monkeypatch, most_bytes):
    """How many objects of a partition waited for the store at a time, in a run whose first ones it refuses often."""
    monkeypatch.setattr(snapshots, "MOST_WAITING_BYTES", most_bytes)
    refused, waited = [], []

    def refusing(storage, asked, real=Storage.carry_out):
        is_log = isinstance(asked, Store) and asked.checkpoint.replays_from is not None
        if is_log and len(refused) < REFUSALS:
            refused.append(asked)
            return Partition.on_store_failed, (asked.checkpoint.epoch, asked.checkpoint.number)
        return real(storage, asked)

    def counted(self, *given, real=LogSnapshots.take):
        effect = real(self, *given)
        waited.append(len(self._pending))
        return effect

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "carry_out", refusing)
        patch.setattr(LogSnapshots, "take", counted)
        simulation = simulated("slow", 1, strategy="global", faults=[], refusals=0.0)
        assert simulation.run().published == wanted("slow")
    assert len(refused) > FEW
    return max(waited)


def test_a_partition_whose_log_is_refused_goes_on_only_so_far(monkeypatch):
    assert waiting_at_most(monkeypatch, 0) <= FEW < waiting_at_most(monkeypatch, 1 << 30)


def asked_for(partition, kind):
    return [each for each in partition.take_effects() if isinstance(each, kind)]


def going(simulation):
    """A partition that keeps a log."""
    (of, *_) = (each for each in simulation.layout.partitions if each.operator == "average")
    partition = simulation._partition(of.number)
    partition.restore(Restore(1, initial_line(simulation.layout)[of.number], ()), {})
    partition.on_order(Go(1))
    partition.take_effects()
    return partition


def passed_over(partition):
    """How often the partition looks before it asks the store again."""
    for looks in range(100):
        partition.on_progress()
        if asked := asked_for(partition, Store):
            return looks, asked
    raise AssertionError


@pytest.mark.parametrize("again", [1, 3])
def test_what_is_taken_after_a_refused_object_counts_after_it(again):
    """Its checkpoint needs both objects."""
    partition = going(simulated("slow", 1))
    partition.checkpoint(1)
    partition.checkpoint(2)
    first, second = asked_for(partition, Store)
    for refusals in range(again):
        partition.on_store_failed(1, 1)
        assert passed_over(partition) == (2**refusals - 1, [first])
        partition.on_progress()
        assert asked_for(partition, Store) == [], "the store has yet to answer"
    partition.on_stored(1, 2)
    assert asked_for(partition, Tell) == []
    partition.on_stored(1, 1)
    assert [each.message.checkpoint for each in asked_for(partition, Tell)] == [first.checkpoint, second.checkpoint]


def test_a_store_that_refuses_for_long_is_asked_every_few_seconds():
    partition = going(simulated("slow", 1))
    partition.checkpoint(1)
    for _ in range(12):
        partition.on_store_failed(1, 1)
        looks, _ = passed_over(partition)
    assert looks == 31


def test_who_rolls_back_asks_for_nothing_of_before():
    partition = going(simulated("slow", 1))
    partition.checkpoint(1)
    partition.on_store_failed(1, 1)
    partition.take_effects()
    partition.leave()
    partition.on_progress()
    assert asked_for(partition, Store) == []


def test_what_waits_behind_an_object_that_the_store_does_not_answer_for_is_bounded(monkeypatch):
    """A store that hangs refuses nothing."""
    monkeypatch.setattr(Block, "nbytes", 2)
    monkeypatch.setattr(snapshots, "MOST_WAITING_BYTES", 3)
    partition = going(simulated("slow", 1))
    full = []
    for number in (1, 2, 3):
        partition.checkpoint(number)
        full.append(partition._snapshots.overfull)
    assert full == [False, False, True], "the first one is being written"
    partition.on_stored(1, 1)
    assert not partition._snapshots.overfull
    partition.on_store_failed(1, 2)
    assert partition._snapshots.overfull
