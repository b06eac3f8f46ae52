"""An operator partition as a state machine: frames, input, timers and messages go in, effects come out.

The caller delivers what arrives in order for each channel, calls `step` for the channels that are ready in whatever
order it likes, and carries out the effects. Nothing here blocks.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from experiments.errors import BadInput
from testbed.core.checkpoints import OUTSIDE
from testbed.core.control import Failure, Go, Published, Ready, Restore, Round, Stable, ToPartition
from testbed.core.effects import Grant, PartitionEffect, Tell
from testbed.core.frames import Frame, FrameKind, data_bytes
from testbed.core.graph import Element
from testbed.core.intake import Intake
from testbed.core.layout import Channel, PartitionLayout
from testbed.core.processing import Processing, states_of
from testbed.core.progress import Tally, Watermarks
from testbed.core.protocol import Protocol, Runtime
from testbed.core.sending import Sending
from testbed.core.snapshots import Core, Snapshots
from testbed.core.source_input import SourceInput
from testbed.operators import END_OF_TIME_NS, Operator

Rebuilt: TypeAlias = tuple[Element, Core]


@dataclass(frozen=True)
class PartitionLimits:
    """What bounds a partition's memory and its messages.

    frames_in_flight      the credit of a channel: frames sent and not yet processed
    records_per_message   more rows than that are sent as several frames
    changes_per_full      a checkpoint is a full copy of the state after so many with changes only
    retained_bytes        by batches: so much output is kept in memory for others that may go back, and more in the
                          store; None: none is kept, since nobody goes back alone
    """

    frames_in_flight: int = 32
    records_per_message: int = 1024
    changes_per_full: int = 10
    retained_bytes: int | None = 64 << 20

    def __post_init__(self) -> None:
        for name in ("frames_in_flight", "records_per_message"):
            if getattr(self, name) < 1:
                raise BadInput(name, getattr(self, name), "1 or more")
        if self.retained_bytes is not None and self.retained_bytes < 1:
            raise BadInput("retained_bytes", self.retained_bytes, "1 or more")


class Partition(Runtime):
    """One operator partition under one protocol. It does nothing until it is told to restore and to go.

    Frames come through `Intake`, are processed by `Processing`, and what that emits leaves through `Sending`. A source
    reads through `SourceInput` instead. `Snapshots` has the checkpoints and logs. Whatever arrives counts in one
    `epoch`, that of the last `Restore`; what is of another is dropped.
    """

    def __init__(
        self,
        layout: PartitionLayout,
        partitions: int,
        schemas: Sequence[pa.Schema],
        protocol: type[Protocol],
        limits: PartitionLimits,
    ) -> None:
        self.layout, self.number, self.partitions = layout, layout.number, partitions
        self.inputs, self.outputs = layout.inputs, layout.outputs
        self.epoch, self._running = -1, False
        self._schemas = schemas
        self._effects: list[PartitionEffect] = []
        self.tally, self._watermarks = Tally(), Watermarks()
        self._protocol = protocol(self)
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
        return self._intake.ready() if self._running and not self._sending.congested else []

    def next_channel(self) -> int | None:
        """The ready channel whose turn it is; None if none is ready."""
        return self._intake.next() if self._running and not self._sending.congested else None

    @property
    def wants_input(self) -> bool:
        """Whether this is a source that can take in a batch now."""
        return self._running and self._input.wanted and not self._sending.congested

    @property
    def next_input(self) -> tuple[int, int | None]:
        """From where a source wants input; and before which position that must end, if it is read again."""
        return self._input.span

    @property
    def position(self) -> int:
        """How far a source has read."""
        return self._input.position

    @property
    def progress(self) -> dict[int, int]:
        """How far it has come: by input channel the number of the last data that it has processed; of a source, its
        position, as if that were the number on a channel from `OUTSIDE`."""
        return self._intake.received or {OUTSIDE: self.position}

    @property
    def running(self) -> bool:
        """Whether it has been told to go since its last restore."""
        return self._running

    def waiting_bytes(self, channel: int) -> int:
        """The size of the data at the head of a channel that is ready."""
        return data_bytes(self._intake.head(channel))

    @property
    def ended(self) -> bool:
        """Whether this is a source that has read everything."""
        return self._input.ended

    @property
    def counts(self) -> tuple[int, int]:
        """How many frames it has sent and processed on all its channels, by what its state knows of."""
        return sum(self._sending.sent.values()), sum(self._intake.received.values())

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do until something arrives, and no output waits to be published."""
        done = self._intake.empty and self._sending.empty and not self._input.rereads
        return self._running and done and not self._snapshots.holds_output

    @property
    def finished(self) -> bool:
        """Whether all input has ended and nothing is left to do; never behind a cycle, where no end is known."""
        return self._running and self._watermarks.current_ns == END_OF_TIME_NS and self.idle

    @property
    def aligning(self) -> bool:
        """Whether some input channel has to wait for others."""
        return self._running and self._intake.blocks

    @property
    def repeats(self) -> bool:
        """Whether it has yet to go on, or to send or put out again what it had before its last restore."""
        return not self._running or self._input.rereads

    @property
    def replaying(self) -> bool:
        """Whether data from the logs has yet to be sent."""
        return self._running and (self._input.rereads or self._sending.replaying)

    def sends_in(self, channel: int) -> int:
        """The epoch in which it sends on an output channel."""
        return self._sending.epoch(channel)

    # What happens to a partition.

    def leave(self) -> None:
        """Stop here and let the operator's state go: a recovery begins, and there is not room for it twice."""
        self._running = False
        self._sending.stop()
        self._processing.leave()

    def rebuilt(self, message: Restore, objects: Mapping[str, bytes]) -> Rebuilt:
        """The operator and the rest as they were at a checkpoint. Changes nothing here: another thread may ask."""
        operator = copy.deepcopy(self.layout.element)
        if isinstance(operator, Operator):
            operator.open()
        return operator, self._snapshots.fill(message, states_of(operator), objects)

    def restore(self, message: Restore, objects: Mapping[str, bytes], rebuilt: Rebuilt | None = None) -> None:
        """Go back to a checkpoint with these objects, those of its state and its logs, and with what `rebuilt` gave."""
        self.epoch, self._running = message.epoch, False
        self._effects.clear()
        element, core = rebuilt or self.rebuilt(message, objects)
        self._processing.restore(element)
        self._snapshots.restore(message)
        self._protocol.on_recovery(core.protocol)
        self._watermarks.restore(core.watermarks, core.watermark_ns)
        self._restore_channels(message, core, objects)
        self._effects.append(Tell(Ready(self.number, self.epoch)))

    def on_order(self, message: ToPartition) -> None:
        """Any message of the coordinator but `Restore`."""
        if message.epoch != self.epoch:
            return
        if isinstance(message, Go):
            self._go()
        elif isinstance(message, Round) and self._running:
            self._protocol.on_round(message.number)
        elif isinstance(message, Failure):
            self._protocol.on_failure(message.partitions)
        elif isinstance(message, Stable):
            self._processing.publish(message.number)

    def on_frame(self, frame: Frame) -> None:
        """A frame has arrived. Raises `ChannelGap` if data before it has not."""
        self._intake.accept(frame)

    def on_credit(self, grant: Grant) -> None:
        """The receiver of an output channel can take more."""
        self._sending.on_credit(grant)

    def on_input(self, batch: pa.RecordBatch | None, position: int, ended: bool = False) -> None:
        """A source has read a batch; `position` is where it reads on, and `ended` says that nothing more will come.

        Raises `SourceChanged` for another batch than before where it reads something again.
        """
        self._input.on_input(batch, position, ended)

    def on_progress(self) -> None:
        """Time to tell how far event time is on channels that had no data for long."""
        if self._running:
            self._input.announce()

    def on_timer(self) -> None:
        """This partition's checkpoint interval is over."""
        if self._running:
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
        """A sink's output up to this number is out."""
        self._effects.append(Tell(Published(self.number, number)))

    def step(self, channel: int) -> None:
        """Process the frame at the head of a channel that is ready."""
        frame = self._intake.head(channel)
        if frame.kind is FrameKind.DATA:
            self._protocol.on_message(frame)
            self._intake.take(channel)
            self._processing.process(frame)
        else:
            self._intake.take(channel)
            (self._protocol.on_marker if frame.kind is FrameKind.MARKER else self._protocol.on_control)(frame)
        self._intake.return_credit(channel)

    # What the protocol may ask.

    def checkpoint(self, number: int | None = None, forced: bool = False) -> None:
        number = self._snapshots.last + 1 if number is None else number
        self._protocol.on_checkpoint(number)
        self.tally.checkpoints += 1
        self.tally.forced += forced
        states = self._processing.states
        self._effects.append(self._snapshots.take(self._core(), states, self.epoch, number, forced))

    def block(self, channel: int) -> None:
        self._intake.block(channel)

    def unblock(self) -> None:
        self._intake.unblock()

    def send(self, kind: FrameKind, channel: Channel, content: bytes) -> None:
        self._sending.control(kind, channel.id, content)

    def _core(self) -> Core:
        return Core(
            self._sending.sent,
            self._intake.received,
            self._watermarks.of_channels,
            self._watermarks.current_ns,
            self._input.position,
            self._input.ended,
            self._protocol.snapshot(),
        )

    def _go(self) -> None:
        self._running = True
        self._sending.start()
        self._input.start()
        self._protocol.on_start()

    def _assemble(self, limits: PartitionLimits) -> None:
        """Make the parts that take in, process, and send."""
        self._intake = Intake(self.layout, self.tally, self._effects)
        self._sending = Sending(
            self.layout,
            self._protocol,
            self._snapshots,
            self._watermarks,
            self.tally,
            self._effects,
            limits.frames_in_flight,
            limits.records_per_message,
        )
        self._processing = Processing(
            self.layout, self._sending, self._snapshots, self._watermarks, self.tally, self._effects
        )
        self._input = SourceInput(self.layout, self._processing, self._sending, self._snapshots, self._watermarks)

    def _restore_channels(self, message: Restore, core: Core, objects: Mapping[str, bytes]) -> None:
        self._intake.restore(self.epoch, core.received)
        self._sending.restore(self.epoch, core.sent, self._snapshots.replayed(message, objects, self._schemas))
        self._input.restore(self.epoch, core.position, core.ended, self._snapshots.reread(message, objects))
