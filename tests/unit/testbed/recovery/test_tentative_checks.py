"""Which batches with tentative output the simulation takes for corrected."""

import pytest

from testbed.core.by_batch.cutting import Batching
from testbed.core.checkpoints import initial_line
from testbed.core.control import Promote, Restore
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.effects import PublishTentative
from testbed.core.partition.partition import PartitionLimits
from testbed.protocols import PROTOCOLS
from testbed.simulation.checks import Checks
from testbed.simulation.outcome import SimulationResult
from testbed.simulation.storage import Storage
from testbed.simulation.tentative import TentativeBroken
from testbed.simulation.workers import SimulatedWorker
from tests.unit.testbed.lone_partitions import lone_by_batch, named
from tests.unit.testbed.small_flows import laid_out

LAYOUT, PROTOCOL, LIMITS, BATCHING = laid_out("tiny")[0], PROTOCOLS["batch-aligned"], PartitionLimits(), Batching(5, 1)
OUT = named(LAYOUT, "out.0")


class Sink:
    """A sink on a worker of its own, of which the checks hear."""

    def __init__(self, checks, name):
        self.checks, self.worker = checks, SimulatedWorker(name)
        self.partition = lone_by_batch(LAYOUT, OUT, LIMITS, BATCHING)
        self.worker.partitions[OUT.number] = self.partition

    def begin(self, epoch, muted=False):
        order = Restore(epoch, initial_line(LAYOUT)[OUT.number], (), muted=muted)
        self.checks.begins(self.worker, OUT.number, order)
        self.partition.restore(order, {})

    def promote(self, epoch):
        self.checks.begins(self.worker, OUT.number, Promote(epoch))
        self.partition.on_order(Promote(epoch))
        self.checks.after_event(self.worker, self.partition)

    def finish(self, *batches):
        for batch in batches:
            self.partition.intake.batch = self.partition.intake.finished = batch
            self.checks.after_event(self.worker, self.partition)

    def put_out(self, batch):
        """Tentative records; nothing that it finishes in this life is exact any more."""
        self.partition.sending.tentative = True
        self.checks.of_effect(self.worker, self.partition, PublishTentative(batch, ()))


class Sinks:
    """Those on workers that the coordinator listens to, and those that were taken for dead."""

    def __init__(self):
        storage, self._workers = Storage(0.0, None, SimulationResult()), []
        rest = storage, LIMITS, BATCHING, None, Coordinator(LAYOUT, PROTOCOL, 1)
        self.checks = Checks(LAYOUT, PROTOCOL, None, self._workers, *rest)

    def heard(self):
        found = self.zombie()
        self._workers.append(found.worker)
        return found

    def zombie(self):
        return Sink(self.checks, f"worker-{len(self._workers)}")

    def check(self, sink):
        self.checks.batches.tentative.check_corrected(sink.partition)


@pytest.fixture
def sinks():
    return Sinks()


@pytest.fixture
def sink(sinks):
    """In its second life; in the first one it finished two batches whose output did not get out."""
    found = sinks.heard()
    found.begin(1)
    found.finish(0, 1)
    found.begin(2)
    return found


def test_a_batch_that_an_earlier_life_has_finished_is_not_corrected_by_that(sinks, sink):
    sink.put_out(1)
    sink.begin(3)
    sink.finish(0)
    with pytest.raises(TentativeBroken, match="not corrected"):
        sinks.check(sink)
    sink.finish(1)
    sinks.check(sink)


def test_what_somebody_finishes_that_was_taken_for_dead_corrects_nothing(sinks, sink):
    sink.put_out(1)
    zombie = sinks.zombie()
    zombie.begin(1)
    zombie.finish(0, 1)
    sink.begin(3)
    with pytest.raises(TentativeBroken, match="not corrected"):
        sinks.check(sink)


def test_what_somebody_puts_out_that_was_taken_for_dead_may_have_been_corrected_before(sinks, sink):
    zombie = sinks.zombie()
    zombie.begin(1)
    sink.finish(0, 1)
    zombie.put_out(1)
    sinks.check(sink)


@pytest.mark.parametrize(("finished", "corrected"), [(0, False), (1, True), (2, True)])
def test_what_a_copy_has_finished_counts_once_it_is_promoted(sinks, sink, finished, corrected):
    sink.put_out(1)
    copy = sinks.heard()
    copy.begin(3, muted=True)
    copy.finish(*range(finished + 1))
    is_uncorrected = sinks.checks.batches.tentative.is_uncorrected
    assert is_uncorrected(copy.partition)
    copy.promote(4)
    assert is_uncorrected(copy.partition) is not corrected
