"""Runs the partitions of one slot: delivers their events and carries out their effects."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from testbed.core.control import Dismiss, Go, Promote, Restore, Stored, ToCoordinator, ToPartition
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import (
    Discard,
    Fetch,
    Grant,
    PartitionEffect,
    Publish,
    PublishTentative,
    Send,
    Spill,
    Store,
    Tell,
    Write,
)
from testbed.core.frames import Frame
from testbed.core.partition.partition import Partition
from testbed.operators import Sink, Source
from testbed.runtime.background import Background
from testbed.runtime.job import Job
from testbed.runtime.network.mesh import Mesh
from testbed.runtime.network.messages import Peers, SlotStatus
from testbed.runtime.slot.catching_up import CatchingUp
from testbed.runtime.slot.exchange import Exchange
from testbed.runtime.slot.hosted import Hosted, Timed
from testbed.runtime.slot.inputs import Inputs
from testbed.runtime.slot.long_lived import LongLived
from testbed.runtime.slot.outputs import Outputs
from testbed.runtime.slot.reporting import Reporting
from testbed.runtime.slot.restoring import ReadBack, Restoring
from testbed.runtime.slot.spilling import Spilling
from testbed.runtime.slot.storing import Storing
from testbed.runtime.slot.timers import Timers
from testbed.stores.store import ObjectStore

STEPS_A_TURN = 16


class Hosting:
    """The part of a slot that handles partitions; `tell` takes their messages to the coordinator.

    It gives partitions their turns, and passes their effects to the part of the slot that carries them out.
    """

    def __init__(
        self,
        job: Job,
        layout: Layout,
        mesh: Mesh,
        store: ObjectStore,
        storing: Background,
        writing: Background,
        tell: Callable[[int, ToCoordinator], None],
    ) -> None:
        self._on_own_time, self._tell = job.protocol_class.on_own_time, tell
        self._hosted = Hosted(job, layout)
        self._timers = Timers(job.checkpoint_interval_s, job.slots if job.staggered else 1)
        self._exchange = Exchange(layout, job.slots, mesh, self._at)
        self._inputs, self._outputs = Inputs(job), Outputs(job, writing, self._at, self._hosted.wake)
        self._storing = Storing(store, storing, self._at, by_batch=job.protocol_class.by_batch)
        self._spilling = Spilling(store, storing, self._storing, self._at)
        self._restoring = Restoring(store, storing, self._hosted, tell, self._restore)
        self._catching_up, self._long_lived = CatchingUp(), LongLived()
        parts = self._hosted, self._exchange, self._inputs, self._outputs, self._storing, self._catching_up
        self._reporting = Reporting(layout, *parts)

    def begin(self, peers: Peers) -> None:
        """A recovery begins: the partitions that are restored roll back to where they will be told."""
        self._restoring.cancel(peers.restored)
        self._catching_up.expect(peers)
        for partition in self._hosted:
            if partition.number in peers.restored:
                partition.leave()
                self._storing.restart(partition.number)
        self._timers.begin(peers.mine)
        self._inputs.begin()
        self._exchange.begin(peers)
        self._reporting.begin(peers)

    def order(self, number: int, message: ToPartition) -> None:
        """A message of the coordinator to a partition, which is made if it isn't there."""
        if isinstance(message, Restore):
            partition = self._hosted[number] if number in self._hosted else self._host(number)
            self._restoring.begin(partition, message)
        elif isinstance(message, Dismiss):
            self._dismiss(number)
        elif number in self._hosted and not self._restoring.put_off(number, message):
            if isinstance(message, Go) and self._on_own_time:
                self._timers.start(time.monotonic())
            if isinstance(message, Promote):
                self._open_output(self._hosted[number])
            self._at(number, Partition.on_order, message)
            if isinstance(message, Promote):
                self._catching_up.follow(self._hosted[number])
            elif isinstance(message, Go) and message.epoch == self._hosted[number].epoch:
                self._reporting.on_go(number)

    def on_frame(self, frame: Frame) -> None:
        """A frame has arrived from another slot."""
        self._exchange.on_frame(frame)

    def on_grant(self, grant: Grant) -> None:
        """Credit has arrived from another slot."""
        self._exchange.on_grant(grant)

    def work(self, until_s: float) -> bool:
        """Let partitions take what has come until the monotonic clock says so; returns whether any could go on."""
        while self._hosted.awake and time.monotonic() < until_s:
            begun_s = self._hosted.working_s
            for partition in self._hosted.turn():
                self._serve(partition)
                ended_s = self._hosted.working_s
                partition.processing_s += ended_s - begun_s
                begun_s = ended_s
            self._exchange.give_credit()
        return self._hosted.awake

    def on_clock(self, now_s: float) -> None:
        """Timers, and sources that had nothing when they were last asked.

        A checkpoint timer passes over partitions whose last checkpoint isn't stored yet.
        """
        self._storing.on_clock(now_s, self._timers.interval_s)
        self._catching_up.look(now_s)
        self._long_lived.on_clock(now_s)
        tell_progress = self._timers.progress_due(now_s)
        if self._timers.checkpoint_due(now_s):
            for partition in self._hosted:
                if not self._storing.is_busy(partition.number):
                    self._at(partition.number, Partition.on_timer)
        for partition in self._hosted:
            if tell_progress:
                self._at(partition.number, Partition.on_progress)
            elif partition.number in self._inputs:
                self._hosted.wake(partition.number)

    def drain(self, ends: Mapping[int, int]) -> None:
        """Sources come to their end. Checkpoints come fast, so that output is soon out."""
        self._inputs.drain(ends)
        self._timers.hurry(time.monotonic())

    def count(self, number: int) -> None:
        """The coordinator asks for a count; from now on every status answers it."""
        self._reporting.asked = number

    def status(self, idle_s: float = 0.0, store_s: float = 0.0) -> SlotStatus:
        """What there is to tell now; what was stored is told once. `idle_s`: how long the slot had nothing to do;
        `store_s`: how long the store has been at what it was asked for."""
        return self._reporting.status(idle_s, store_s)

    def close(self) -> None:
        """Forget all partitions; their input and output end."""
        self._inputs.close()
        self._outputs.close()
        self._restoring.clear()
        self._storing.clear()
        self._catching_up.clear()
        self._hosted.clear()
        self._exchange.end()
        self._reporting.end()
        self._long_lived.end()

    def _dismiss(self, number: int) -> None:
        """A copy is of no more use; a partition that takes its place here will be restored."""
        self._restoring.cancel([number])
        self._inputs.close_one(number)
        if (copy := self._hosted.restored(number)) is not None:
            self._spilling.forget(copy)
        self._hosted.remove(number)

    def _open_output(self, partition: Partition) -> None:
        if isinstance(partition.layout.element, Sink):
            self._outputs.open(partition.layout)

    def _host(self, number: int) -> Timed:
        partition = self._hosted.make(number)
        if isinstance(partition.layout.element, Source):
            self._inputs.open(partition)
        return partition

    # What happens to partitions.

    def _at(self, number: int, event: Callable[..., None], *arguments: object) -> None:
        partition = self._hosted.restored(number)
        if partition is not None:
            getattr(partition, event.__name__)(*arguments)
            self._carry_out(partition)
            self._hosted.wake(number)

    def _serve(self, partition: Partition) -> None:
        number = partition.number
        if partition.epoch < 0 or self._outputs.is_full(number):
            return
        if number in self._inputs:
            self._read(partition)
            return
        for _ in range(STEPS_A_TURN):
            channel = partition.next_channel()
            if channel is None:
                return
            self._catching_up.count(partition, channel)
            partition.step(channel)
            self._carry_out(partition)
        self._hosted.wake(number)

    def _read(self, source: Partition) -> None:
        """Logs grow until they are stored: while the store lags, a source reads only what has an end: what it had sent
        before a restore, or what is left when the run drains."""
        holds_back = self._storing.lags and not self._inputs.draining and not source.repeats
        if holds_back or not source.wants_input:
            return
        read = self._inputs.read(source)
        if read is not None:
            self._at(source.number, Partition.on_input, *read)

    def _restore(self, partition: Timed, message: Restore, found: ReadBack, since: list[ToPartition]) -> None:
        self._storing.restart(partition.number)
        partition.restore(message, found.objects, found.rebuilt)
        partition.on_read_back(found.seconds)
        if not message.muted:
            self._open_output(partition)
            self._catching_up.begin(partition, found)
        self._carry_out(partition)
        self._hosted.wake(partition.number)
        for each in since:
            self.order(partition.number, each)

    # What partitions ask for.

    def _carry_out(self, partition: Partition) -> None:
        for effect in partition.take_effects():
            self._do(partition, effect)

    def _do(self, partition: Partition, effect: PartitionEffect) -> None:
        number = partition.number
        match effect:
            case Send(frame, to_copy):
                self._exchange.send(frame, to_copy)
            case Grant():
                self._exchange.grant(effect)
            case Store():
                self._storing.store(number, effect)
            case Spill() | Fetch() | Discard():
                self._spilling.do(number, effect)
            case Write(batch):
                self._outputs.write(number, batch)
            case PublishTentative():
                self._outputs.write_tentative(partition.layout, effect)
            case Publish(checkpoint, batches):
                self._outputs.publish(number, checkpoint, batches)
            case Tell(message):
                if isinstance(message, Stored):
                    self._storing.on_counted(number, message.checkpoint.number)
                self._tell(number, message)
