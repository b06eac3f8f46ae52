"""Invariants of a simulated run by batch, after every step and for every effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from experiments.errors import AftershockError
from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.checkpoints import Checkpoint
from testbed.core.control import Absent, Rejoin, Restore, decode_message
from testbed.core.coordinator.coordinator import Coordinator, Phase
from testbed.core.dataflow.layout import Channel, Layout
from testbed.core.partition.partition import PartitionLimits
from testbed.simulation.network import Network
from testbed.simulation.outcome import Row
from testbed.simulation.retained import RetainedMemory
from testbed.simulation.tentative import TentativeChecks
from testbed.simulation.workers import LEAVE, SimulatedWorker


class InvariantBroken(AftershockError):
    """Something holds no more that always must: a fault of a partition, or of the coordinator."""


class Invariants:
    """Looks at the workers that the coordinator listens to. Everything raises `InvariantBroken`.

    After most steps only what the step has changed is checked: one partition or two, and their channels. Everything
    else was right before, and what it is compared with (orders, the coordinator, who is where) is unchanged.
    """

    def __init__(
        self,
        layout: Layout,
        coordinator: Coordinator,
        network: Network,
        workers: Sequence[SimulatedWorker],
        limits: PartitionLimits,
    ) -> None:
        """`workers`: those that the coordinator listens to, at any time."""
        self._layout, self._coordinator, self._network = layout, coordinator, network
        self._workers, self._credit = workers, limits.frames_in_flight
        self.memory = RetainedMemory(limits)
        self._feeding = frozenset[int]()
        self.tentative = TentativeChecks(layout)
        self._changed, self._all_changed = set[int](), True
        self._placed: dict[int, tuple[SimulatedWorker, BatchedPartition]] = {}
        self._channels = [{channel.id for channel in (*p.inputs, *p.outputs)} for p in layout.partitions]

    def follow(self, coordinator: Coordinator) -> None:
        """From now on this coordinator counts."""
        self._coordinator, self._feeding = coordinator, frozenset()
        self.all_changed()

    def changed(self, number: int) -> None:
        """This step changes a partition, or what is under way to it or from it."""
        self._changed.add(number)

    def all_changed(self) -> None:
        """This step changes the coordinator, what is under way to a worker, or who is where."""
        self._all_changed = True

    def check(self) -> None:
        """After every step."""
        if self._all_changed:
            self._placed = self._find_placed()
            looked_at: Collection[int] = self._placed
            channels: Iterable[int] = range(len(self._layout.channels))
        else:
            looked_at = self._changed & self._placed.keys()
            channels = sorted(set().union(*(self._channels[number] for number in looked_at)))
        for number in looked_at:
            self._check_partition(*self._placed[number])
            self._check_tentative(*self._placed[number])
        for channel in (self._layout.channels[number] for number in channels):
            if channel.sender in self._placed and channel.receiver in self._placed:
                self._check_channel(channel, self._placed[channel.sender], self._placed[channel.receiver])
        self._changed, self._all_changed = set(), False

    def _find_placed(self) -> dict[int, tuple[SimulatedWorker, BatchedPartition]]:
        """The partitions that live where the coordinator has them."""
        down, lives = self._coordinator.down, self._coordinator.lives
        return {
            number: (worker, partition)
            for worker in self._workers
            for number, partition in worker.partitions.items()
            if isinstance(partition, BatchedPartition) and number not in down and partition.epoch == lives[number]
        }

    def _check_tentative(self, worker: SimulatedWorker, partition: BatchedPartition) -> None:
        """Who is tentative misses something."""
        if partition.tentative:
            heard_of = (data for number, data in worker.orders if number == partition.number and data != LEAVE)
            orders = [decode_message(data) for data in heard_of]
            informed = not any(isinstance(each, Absent | Rejoin | Restore) for each in orders)
            others = {number for number, (_, each) in self._placed.items() if each.tentative} - {partition.number}
            self.tentative.check(partition, informed, self._coordinator.down, others)

    def _check_partition(self, worker: SimulatedWorker, partition: BatchedPartition) -> None:
        """Retained is what lies after the stable line; who fails is known to those who send to it."""
        name, kept = partition.layout.name, partition.sending.retained.number
        stable = self._coordinator.history.stable[partition.number].number
        if kept > max(stable, worker.restored[partition.number]):
            raise InvariantBroken(f"{name} retains what is after checkpoint {kept}, and {stable} is stable")
        if worker.orders:
            return
        if kept < stable and self._coordinator.phase is Phase.RUNNING:
            raise InvariantBroken(f"{name} still retains what is after checkpoint {kept}, and {stable} is stable")
        failed = {each.id for each in partition.outputs if each.receiver in self._coordinator.down}
        if partition.sending.unheard != failed:
            raise InvariantBroken(f"{name} takes {set(partition.sending.unheard)} for unheard, which {failed} are")
        waiting = self._coordinator.waiting_partitions
        told = () if waiting is None else waiting.told(partition.number)
        if partition.sending.unawaited != {each.id for each in partition.outputs if each.receiver in told}:
            raise InvariantBroken(f"{name} does not wait on {set(partition.sending.unawaited)}, and was told {told}")

    def _check_channel(
        self,
        channel: Channel,
        sending: tuple[SimulatedWorker, BatchedPartition],
        receiving: tuple[SimulatedWorker, BatchedPartition],
    ) -> None:
        """Both ends agree on the epoch once they have heard of it, and no credit is lost or made."""
        (one, sender), (other, receiver) = sending, receiving
        epoch, expected = sender.sending.epoch(channel.id), receiver.intake.epoch(channel.id)
        if epoch != expected:
            if not one.orders and not other.orders:
                raise InvariantBroken(f"channel {channel.id}: sent in epoch {epoch}, received in {expected}")
            return
        under_way, owed = self._network.under_way(channel.id, epoch), receiver.intake.owes(channel.id)
        credit = sender.sending.credit(channel.id)
        if credit + under_way + owed != self._credit:
            of = f"{credit} left, {under_way} under way, {owed} queued"
            raise InvariantBroken(f"channel {channel.id}: of a credit of {self._credit} there are {of}")

    def check_stored(self, worker: SimulatedWorker, checkpoint: Checkpoint, last_batch: int, out: int) -> None:
        """A sink's checkpoint goes to the store once all output up to its last batch is published.

        `out`: the number of the last output that is published.
        """
        numbers = [effect.number for number, effect in worker.publishing if number == checkpoint.partition]
        waiting = [number for number in numbers if out < number <= last_batch + 1]
        if waiting:
            raise InvariantBroken(f"checkpoint {checkpoint.number} is stored before output {waiting} is out")

    def restoring(self, names: frozenset[str]) -> None:
        """A strategy that replays from the sources restores these. Those that no worker has start again, and so do all
        partitions upstream of them."""
        there = {number for worker in self._workers for number in worker.partitions}
        lost = {each.number for each in self._layout.partitions if each.name in names} - there
        self._feeding = self._layout.with_upstream(lost)

    def check_restored(self, worker: SimulatedWorker, number: int) -> None:
        """A strategy that restores parts leaves exact survivors alone, unless something could not be read, or lost
        partitions need input that nothing else has. A copy is none, be it that it could not be made."""
        there = worker.partitions.get(number)
        if number in self._feeding:
            return
        if isinstance(there, BatchedPartition) and there.epoch >= 0 and not there.muted and not there.tentative:
            raise InvariantBroken(f"{self._layout.partitions[number].name} is restored and was not lost")

    def check_published(self, published: Counter[Row], expected: Counter[Row]) -> None:
        """Output is part of what a run without faults emits."""
        if not published <= expected:
            raise InvariantBroken(f"put out and not expected: {published - expected}")
