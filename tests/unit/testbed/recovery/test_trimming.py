"""Copies of sinks let go what is out: all of it that they are told of, and nothing else."""

import pytest

from testbed.core.by_batch.muted import WithheldOutput
from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.control import Trim, decode_message
from testbed.core.coordinator.copying import Copying
from testbed.operators import Sink
from testbed.simulation import Simulation
from testbed.simulation.workers import LEAVE
from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.recovery.copied_runs import copied
from tests.unit.testbed.runs import oracle


class LetGoTooMuch(AssertionError):
    """A copy has let go output that is not out."""


class Trimmed(Simulation):
    """A run in which copies are trimmed at any moment."""

    let_go = 0

    def _possible(self):
        if self._random.random() < 0.1:
            self.coordinator.on_trim_due()
            self._coordinate()
        return super()._possible()

    def _order(self, worker):
        number, data = worker.orders[0]
        partition, message = worker.partitions.get(number), None if data == LEAVE else decode_message(data)
        is_trimmed = isinstance(partition, BatchedPartition) and isinstance(message, Trim)
        before = withheld(partition) if is_trimmed else []
        super()._order(worker)
        if is_trimmed:
            gone = before[: len(before) - len(withheld(partition))]
            self.let_go += len(gone)
            out = min(message.number, self._storage.published(number))
            if any(batch + 1 > out for batch in gone):
                raise LetGoTooMuch(f"{partition.layout.name} lets go {gone}")


def withheld(partition):
    """The batches whose output a copy has."""
    return [batch for batch, _ in partition.withheld._effects]


def trimmed(seed, **options):
    """How much copies let go in a run, whose output is right."""
    run = copied("tiny", seed, kind=Trimmed, **options)
    outcome = run.run()
    assert outcome.published == oracle("tiny"), f"seed {seed}"
    return run.let_go, outcome.promoted


@pytest.mark.parametrize("seeds", first_and_rest(range(16), 3))
def test_copies_of_sinks_let_go_what_is_out_and_nothing_is_lost(seeds):
    found = [trimmed(seed) for seed in seeds]
    assert sum(let_go for let_go, _ in found) > 2.5 * len(seeds)
    assert sum(promoted for _, promoted in found) > len(seeds) / 5


def test_letting_go_one_batch_too_many_is_noticed(monkeypatch):
    """Planted: output is let go up to the batch after the last one that is out."""
    sound = WithheldOutput.trim
    monkeypatch.setattr(WithheldOutput, "trim", lambda self, first: sound(self, first + 1))
    with pytest.raises(LetGoTooMuch):
        list(map(trimmed, range(16)))


def test_copies_that_are_not_told_let_nothing_go(monkeypatch):
    """Planted: the coordinator says nothing."""
    monkeypatch.setattr(Copying, "trim", lambda self: None)
    assert sum(let_go for let_go, _ in map(trimmed, range(4))) == 0


def test_only_copies_of_sinks_are_told():
    run = copied("tiny", 0, faults=[], slots=2, standby=2)
    run.run()
    run.coordinator.on_trim_due()
    told = {each.partition: each.message.number for each in run.coordinator.take_effects()}
    sinks = [each.number for each in run.layout.partitions if isinstance(each.element, Sink)]
    assert told == {number: run._storage.published(number) for number in sinks}
    assert all(told.values())
