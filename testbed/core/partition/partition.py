"""An operator partition as a state machine: frames, input, timers and messages go in, effects come out.

The caller delivers the frames of each channel in order, calls `step` for the channels that are ready, in any order, and
carries out the effects. Nothing here blocks.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from experiments.errors import BadInput
from testbed.core.control import Failure, Go, Published, Ready, Restore, Round, Stable, ToPartition
from testbed.core.dataflow.graph import Element
from testbed.core.dataflow.layout import Channel, PartitionLayout
from testbed.core.effects import Grant, PartitionEffect, Tell
from testbed.core.frames import Frame, FrameKind
from testbed.core.partition.counts_and_watermarks import Tally, Watermarks
from testbed.core.partition.intake import Intake
from testbed.core.partition.processing import Processing, states_of
from testbed.core.partition.sending import RETURNING_BYTES, Sending
from testbed.core.partition.snapshots import Core, Snapshots
from testbed.core.partition.source_input import SourceInput
from testbed.core.partition.stored_output import HasStoredOutput
from testbed.core.protocol import Protocol, Runtime
from testbed.operators import Operator

Rebuilt: TypeAlias = tuple[Element, Core]


@dataclass(frozen=True)
class PartitionLimits:
    """What bounds a partition's memory and its messages.

    frames_in_flight      the credit of a channel: frames sent and not yet processed
    records_per_message   more rows than that are sent as several frames
    messages_in_range     in order of arrival, with one record a message: the most messages that travel in one frame and
                          are processed together. Each has a number and takes credit. The credit of a channel is then
                          this number times `frames_in_flight`
    changes_per_full      the most earlier objects that a checkpoint builds on; 0: each has the whole state
    returning_bytes       first come: how much of what waits on the channels that close a cycle is kept in memory; more
                          goes to the store
    retained_bytes        with batches: how much output is kept in memory for others that may roll back; more goes to
                          the store. None: none is kept, since no partition rolls back alone
    """

    frames_in_flight: int = 32
    records_per_message: int = 1024
    messages_in_range: int = 1024
    changes_per_full: int = 10
    returning_bytes: int = RETURNING_BYTES
    retained_bytes: int | None = 64 << 20

    def __post_init__(self) -> None:
        for name in ("frames_in_flight", "records_per_message", "messages_in_range", "returning_bytes"):
            if getattr(self, name) < 1:
                raise BadInput(name, getattr(self, name), "1 or more")
        if self.retained_bytes is not None and self.retained_bytes < 1:
            raise BadInput("retained_bytes", self.retained_bytes, "1 or more")

    @property
    def in_range(self) -> int:
        """How many messages travel together, first come."""
        return self.messages_in_range if self.records_per_message == 1 else 1


class Partition(HasStoredOutput):
    """One operator partition under one protocol. It does nothing until it is told to restore and to go.

    Frames come through `Intake`, are processed by `Processing`, and what that emits leaves through `Sending`. A source
    reads through `SourceInput` instead. `Snapshots` has the checkpoints and logs. Only frames and messages of one
    `epoch` count, that of the last `Restore`; those of other epochs are dropped. Others may look at these parts, but
    only the partition changes them.

    running   whether it has been told to go since its last restore
    """

    def __init__(
        self,
        layout: PartitionLayout,
        partitions: int,
        schemas: Sequence[pa.Schema],
        protocol: type[Protocol],
        limits: PartitionLimits,
    ) -> None:
        self.layout, self.number = layout, layout.number
        self.inputs, self.outputs = layout.inputs, layout.outputs
        self.epoch, self.running = -1, False
        self._schemas = schemas
        self._effects: list[PartitionEffect] = []
        self.tally, self.watermarks = Tally(), Watermarks()
        self._protocol = protocol(PartitionRuntime(self, partitions))
        self._snapshots = Snapshots(layout, limits.changes_per_full)
        self._assemble(limits)

    # What the caller may ask.

    def take_effects(self) -> list[PartitionEffect]:
        """The effects since the last call, to be carried out in this order."""
        effects = self._effects.copy()
        self._effects.clear()
        return effects

    def ready_channels(self) -> list[int]:
        """The input channels that `step` may take from."""
        return self.intake.ready() if self.running and not self.sending.congested else []

    def next_channel(self) -> int | None:
        """The ready channel whose turn it is; None if none is ready."""
        return self.intake.next() if self.running and not self.sending.congested else None

    @property
    def wants_input(self) -> bool:
        """Whether this is a source that can read a batch now."""
        return self.running and self.source_input.wanted and not self.sending.congested

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do until something arrives, and no output waits to be published."""
        done = self.intake.empty and self.sending.empty and not self.source_input.rereads
        return self.running and done and not self._snapshots.holds_output

    @property
    def repeats(self) -> bool:
        """Whether it has yet to go on, or to send or emit again what it had before its last restore."""
        return not self.running or self.source_input.rereads

    # What happens to a partition.

    def leave(self) -> None:
        """Stop here. Let the operator's state go, and by batches all frames that are kept: a recovery begins, and there
        is no room for both twice, or the partition is of no more use."""
        self.running = False
        self.sending.stop()
        self.processing.leave()

    def rebuilt(self, message: Restore, objects: Mapping[str, bytes]) -> Rebuilt:
        """The operator and the rest as they were at a checkpoint. Changes nothing here: another thread may ask."""
        operator = copy.deepcopy(self.layout.element)
        if isinstance(operator, Operator):
            operator.open()
        return operator, self._snapshots.fill(message, states_of(operator), objects)

    def restore(self, message: Restore, objects: Mapping[str, bytes], rebuilt: Rebuilt | None = None) -> None:
        """Go back to a checkpoint with these objects, those of its state and its logs, and with what `rebuilt` gave."""
        self.epoch, self.running = message.epoch, False
        self._effects.clear()
        element, core = rebuilt or self.rebuilt(message, objects)
        self.processing.restore(element)
        self._snapshots.restore(message)
        self._protocol.on_recovery(core.protocol)
        self.watermarks.restore(core.watermarks, core.watermark_ns)
        self._restore_channels(message, core, objects)
        self._effects.append(Tell(Ready(self.number, self.epoch)))

    def on_order(self, message: ToPartition) -> None:
        """Any message of the coordinator but `Restore`."""
        if message.epoch != self.epoch:
            return
        if isinstance(message, Go):
            self._go()
        elif isinstance(message, Round) and self.running:
            self._protocol.on_round(message.number)
        elif isinstance(message, Failure):
            self._protocol.on_failure(message.partitions)
        elif isinstance(message, Stable):
            self.processing.publish(message.number)

    def on_frame(self, frame: Frame) -> None:
        """A frame has arrived. Raises `ChannelGap` if data before it has not."""
        self.intake.accept(frame)

    def on_credit(self, grant: Grant) -> None:
        """The receiver of an output channel can take more."""
        self.sending.on_credit(grant)

    def on_input(
        self, batch: pa.RecordBatch | None, position: int, ended: bool = False, times_ns: tuple[int, int] | None = None
    ) -> None:
        """A source has read a batch; `position` is where it reads on, and `ended` says that nothing more will come.

        `times_ns`: of the first and the last event read, if the input tells them: those for other sources count, too.
        Raises `SourceChanged` for another batch than before where it reads something again.
        """
        self.source_input.on_input(batch, position, ended, times_ns)

    def on_progress(self) -> None:
        """Time to tell how far event time is on channels that had no data for long, and to ask the store again."""
        if self.running:
            self.source_input.announce()
        self.sending.spilled.retry()

    def on_timer(self) -> None:
        """This partition's checkpoint interval is over."""
        if self.running:
            self._protocol.on_timer()

    def on_stored(self, epoch: int, number: int) -> None:
        """The store has the objects of a checkpoint."""
        if epoch == self.epoch:
            self._effects += [Tell(message) for message in self._snapshots.on_stored(epoch, number)]
            self._protocol.on_checkpoint_stored(number)

    def on_store_failed(self, epoch: int, number: int) -> None:
        """The store refused an object of a checkpoint: the next one makes up for it."""
        if epoch == self.epoch:
            self._effects += [Tell(message) for message in self._snapshots.on_store_failed(epoch, number)]

    def on_published(self, number: int) -> None:
        """A sink's output up to this number is published."""
        self._effects.append(Tell(Published(self.number, number)))

    def step(self, channel: int) -> None:
        """Process what is at the head of a channel that is ready: a frame, of ranges what can be done at one go."""
        frame = self.intake.head(channel)
        if frame.kind is FrameKind.DATA:
            self._protocol.on_message(frame)
            self.intake.take(channel)
            self.processing.process(frame)
        else:
            self.intake.take(channel)
            (self._protocol.on_marker if frame.kind is FrameKind.MARKER else self._protocol.on_control)(frame)
        self.intake.return_credit(channel, frame.messages)

    def checkpoint(self, number: int | None = None, forced: bool = False) -> None:
        """Take a checkpoint before anything else happens; its number is the next one, unless it is given."""
        number = self._snapshots.last + 1 if number is None else number
        self._protocol.on_checkpoint(number)
        self.tally.checkpoints += 1
        self.tally.forced += forced
        states = self.processing.states
        self._effects.append(self._snapshots.take(self._core(), states, self.epoch, number, forced))

    def _core(self) -> Core:
        return Core(
            self.sending.sent,
            self.intake.received,
            self.watermarks.of_channels,
            self.watermarks.current_ns,
            self.source_input.position,
            self.source_input.ended,
            self._protocol.snapshot(),
        )

    def _go(self) -> None:
        self.running = True
        self.sending.start()
        self.source_input.start()
        self._protocol.on_start()

    def _assemble(self, limits: PartitionLimits) -> None:
        """Make the parts that read, process, and send."""
        self.intake = Intake(self.layout, self.tally, self._effects, self.watermarks, limits.in_range)
        self.sending = Sending(
            self.layout,
            self._protocol,
            self._snapshots,
            self.watermarks,
            self.tally,
            self._effects,
            limits.frames_in_flight,
            limits.records_per_message,
            limits.in_range,
            limits.returning_bytes,
        )
        self.processing = Processing(
            self.layout, self.sending, self._snapshots, self.watermarks, self.tally, self._effects
        )
        self.source_input = SourceInput(self.layout, self.processing, self.sending, self._snapshots, self.watermarks)

    def _restore_channels(self, message: Restore, core: Core, objects: Mapping[str, bytes]) -> None:
        self.intake.restore(self.epoch, core.received)
        self.sending.restore(self.epoch, core.sent, self._snapshots.replayed(message, objects, self._schemas))
        self.source_input.restore(self.epoch, core.position, core.ended, self._snapshots.reread(message, objects))


class PartitionRuntime(Runtime):
    """What a partition does for its protocol."""

    def __init__(self, partition: Partition, partitions: int) -> None:
        self.partition = partition
        self.number, self.partitions = partition.number, partitions
        self.inputs, self.outputs = partition.inputs, partition.outputs

    def checkpoint(self, number: int | None = None, forced: bool = False) -> None:
        self.partition.checkpoint(number, forced)

    def block(self, channel: int) -> None:
        self.partition.intake.block(channel)

    def unblock(self) -> None:
        self.partition.intake.unblock()

    def send(self, kind: FrameKind, channel: Channel, content: bytes) -> None:
        self.partition.sending.control(kind, channel.id, content)
