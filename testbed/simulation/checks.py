"""The checks of a simulated run, after every step and on every effect, as far as they apply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from testbed.core.by_batch.cutting import Batching
from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.control import Promote, Restore, TurnedTentative
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import PartitionEffect, PublishTentative, Store, Tell
from testbed.core.partition.partition import Partition, PartitionLimits
from testbed.core.protocol import Protocol
from testbed.output_log.partition import LoggedPartition
from testbed.simulation.copies import CopyInvariants
from testbed.simulation.invariants import Invariants
from testbed.simulation.logged import LoggedChecks
from testbed.simulation.network import Network
from testbed.simulation.outcome import Row
from testbed.simulation.storage import Storage
from testbed.simulation.workers import SimulatedWorker


class Checks:
    """Raises `InvariantBroken`, `CopyInvariantBroken`, `TentativeBroken`, `TooMuchRetained` or `WrongState`.

    batches   of runs by batch
    copies    of runs with active copies
    logged    of partitions that keep an output log
    untold    whether the coordinator's orders were not delivered yet: then partitions know less than the coordinator
    """

    def __init__(
        self,
        layout: Layout,
        protocol: type[Protocol],
        network: Network,
        workers: Sequence[SimulatedWorker],
        storage: Storage,
        limits: PartitionLimits,
        batching: Batching,
        expected: Counter[Row] | None,
        coordinator: Coordinator,
    ) -> None:
        """`workers`: those that the coordinator listens to, at any time; `expected`: what a run without faults
        publishes, if that is known."""
        self._workers, self._storage, self._batching, self._expected = workers, storage, batching, expected
        self._by_batch, self._has_copies = protocol.by_batch, bool(coordinator.copies.wanted)
        self.batches = Invariants(layout, coordinator, network, workers, limits)
        self.copies = CopyInvariants(layout, coordinator, network, workers, limits.frames_in_flight)
        self.logged = LoggedChecks()
        self.untold = False

    def follow(self, coordinator: Coordinator) -> None:
        """Another driver has taken over, with this coordinator. What was emitted and stored before still counts."""
        self.batches.follow(coordinator)
        self.copies.follow(coordinator)
        self.untold = False

    def after_step(self) -> None:
        """One event has happened."""
        if self.untold:
            self.batches.all_changed()
            return
        if self._by_batch:
            self.batches.check()
        if self._has_copies:
            self.copies.check()

    def begins(self, worker: SimulatedWorker, number: int, order: Restore | Promote) -> None:
        """A partition rolls back to the line, or is promoted: a life of it begins once it hears this order."""
        self.batches.tentative.begins(number, order.epoch, self._storage.published(number))
        copy = worker.partitions.get(number)
        if isinstance(order, Promote) and isinstance(copy, BatchedPartition) and worker in self._workers:
            self.batches.tentative.promoted(copy)

    def after_event(self, worker: SimulatedWorker, partition: Partition) -> None:
        """Something has happened to a partition. Until it is restored it has no state to be checked."""
        if not isinstance(partition, BatchedPartition) or not partition.processing.is_restored:
            return
        if self._has_copies:
            self.copies.check_state(partition)
        if not partition.tentative and not partition.muted and worker in self._workers:
            self.batches.tentative.on_exact(partition)

    def of_effect(self, worker: SimulatedWorker, partition: Partition, effect: PartitionEffect) -> None:
        """A partition wants this, and it has not been done yet."""
        if isinstance(partition, BatchedPartition):
            self.copies.check_effect(partition, effect)
        match effect:
            case Store(checkpoint):
                if isinstance(partition, BatchedPartition):
                    last = self._batching.first_behind(checkpoint.number) - 1
                    self.batches.check_stored(worker, checkpoint, last, self._storage.published(partition.number))
                    self.batches.tentative.check_checkpoint(partition, checkpoint, last)
                if isinstance(partition, LoggedPartition):
                    self.logged.check_checkpoint(partition, checkpoint)
            case PublishTentative() if isinstance(partition, BatchedPartition):
                self.batches.tentative.check_output(partition, effect, worker in self._workers)
            case Tell(TurnedTentative() as message):
                self.batches.tentative.on_turned(message)

    def after_effects(self, partition: Partition) -> None:
        """All that a partition wanted has been done."""
        if isinstance(partition, BatchedPartition):
            self.batches.memory.check(partition)

    def published(self, rows: Counter[Row]) -> None:
        """So much has been published so far."""
        if self._expected is not None:
            self.batches.check_published(rows, self._expected)

    def at_end(self) -> None:
        """Everything is processed and published."""
        if self._has_copies:
            self.copies.check_end()
        for worker in self._workers:
            for partition in worker.partitions.values():
                if isinstance(partition, BatchedPartition) and not partition.muted:
                    self.batches.tentative.check_corrected(partition)
                    self.batches.memory.check_left(partition, self._storage.objects.keys())
