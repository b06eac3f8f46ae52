"""Invariants of copies after every step of a simulated run."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from experiments.errors import AftershockError
from testbed.core.by_batch.partition import BatchedPartition, is_muted
from testbed.core.coordinator.coordinator import Coordinator, Phase
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import PartitionEffect, Publish, PublishTentative, Send, Store, Write
from testbed.core.partition.partition_status import counts
from testbed.simulation.network import Network
from testbed.simulation.workers import SimulatedWorker


class CopyInvariantBroken(AftershockError):
    """A copy is not what its primary is, or lets out what it must keep."""


class CopyInvariants:
    """Everything raises `CopyInvariantBroken`. `compared` counts the states of copies that were held against others."""

    def __init__(
        self,
        layout: Layout,
        coordinator: Coordinator,
        network: Network,
        workers: Sequence[SimulatedWorker],
        credit: int,
    ) -> None:
        """`workers`: those that the coordinator listens to, at any time; `credit`: the limit of each channel."""
        self._layout, self._coordinator, self._network = layout, coordinator, network
        self._workers, self._credit = workers, credit
        self._states: dict[tuple[int, int], bytes] = {}
        self._compared_at = WeakKeyDictionary[BatchedPartition, tuple[int, int]]()
        self.compared = 0

    def follow(self, coordinator: Coordinator) -> None:
        """From now on this coordinator counts."""
        self._coordinator = coordinator

    def check(self) -> None:
        """After every step: credit of links to copies, and what the coordinator takes for a copy is one."""
        named = {worker.name: worker for worker in self._workers}
        told = self._coordinator.phase is Phase.RUNNING and not self._coordinator.copies.attachments
        everybody_knows = told and not any(worker.orders or worker.messages for worker in self._workers)
        for number, known in self._coordinator.copies.of.items():
            worker = named.get(known.worker)
            if worker is None:
                continue
            copied = worker.partitions.get(number)
            if not isinstance(copied, BatchedPartition) or copied.epoch != known.life:
                continue
            if copied.tentative:
                raise CopyInvariantBroken(f"the copy of {copied.layout.name} is tentative")
            if not copied.muted:
                raise CopyInvariantBroken(f"the copy of {copied.layout.name} is not muted")
            kept, stable = copied.sending.retained.number, self._coordinator.history.stable[number].number
            if kept > max(stable, worker.restored[number]):
                raise CopyInvariantBroken(
                    f"the copy of {copied.layout.name} retains from {kept}, and {stable} is stable"
                )
            for channel in copied.inputs:
                self._check_channel(channel.id, channel.sender, copied, everybody_knows)

    def check_effect(self, partition: BatchedPartition, effect: PartitionEffect) -> None:
        """A copy lets nothing out."""
        if partition.muted and isinstance(effect, Send | Store | Publish | PublishTentative | Write):
            raise CopyInvariantBroken(f"the copy of {partition.layout.name} lets out {type(effect).__name__}")

    def check_state(self, partition: BatchedPartition) -> None:
        """At the end of a batch every exact life and every copy of a partition has the same state."""
        known = self._compared_at.get(partition) == (partition.epoch, partition.batch)
        if known or partition.tentative or not partition.intake.at_border:
            return
        self._compared_at[partition] = partition.epoch, partition.batch
        key, state = (partition.number, partition.batch), _content(partition)
        if self._states.setdefault(key, state) != state:
            raise CopyInvariantBroken(f"{partition.layout.name} has another state after batch {partition.batch}")
        self.compared += partition.muted

    def check_end(self) -> None:
        """When all is done, copies have processed what their primaries have. Those of sources may wait for
        checkpoints."""
        named = {worker.name: worker for worker in self._workers}
        for number, known in self._coordinator.copies.of.items():
            copied = named[known.worker].partitions[number]
            primary = named[self._coordinator.placement.worker_of(number) or ""].partitions[number]
            if copied.inputs and counts(copied) != counts(primary):
                raise CopyInvariantBroken(
                    f"the copy of {primary.layout.name} is at {counts(copied)}: {counts(primary)}"
                )

    def _check_channel(self, channel: int, number: int, copied: BatchedPartition, everybody_knows: bool) -> None:
        """No credit is lost or made on a link to a copy, and each has both of its ends once all have heard of it."""
        name = self._coordinator.placement.worker_of(number)
        for worker in self._workers:
            sender = worker.partitions.get(number)
            if worker.name != name or not isinstance(sender, BatchedPartition) or is_muted(sender):
                continue
            epoch, credit = sender.sending.copies.ends.get(channel, (-1, 0))
            if epoch != copied.intake.epoch(channel):
                if everybody_knows:
                    raise CopyInvariantBroken(f"the copy of {copied.layout.name} gets nothing on channel {channel}")
            else:
                under_way, owed = self._network.under_way(channel, epoch), copied.intake.owes(channel)
                if credit + under_way + owed != self._credit:
                    found = f"{credit} left, {under_way} under way, {owed} queued"
                    raise CopyInvariantBroken(f"channel {channel} to a copy: of {self._credit} there are {found}")


def _content(partition: BatchedPartition) -> bytes:
    """The state of a partition."""
    states = {name: state.content() for name, state in partition.processing.states.items()}
    return pickle.dumps((_sorted(states), counts(partition)))


def _sorted(value: Any) -> Any:
    """A value that does not depend on the order of keys."""
    if isinstance(value, dict):
        return sorted(((repr(key), _sorted(each)) for key, each in value.items()), key=lambda pair: pair[0])
    return [_sorted(each) for each in value] if isinstance(value, tuple | list) else value
