"""An operator partition that works batch by batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from testbed.core.by_batch.cutting import LAST_BATCH, Batching, Cut
from testbed.core.by_batch.muted import WithheldOutput
from testbed.core.by_batch.processing import BatchProcessing
from testbed.core.by_batch.retained import Retained
from testbed.core.by_batch.sending import BatchSending
from testbed.core.by_batch.source import BatchSource
from testbed.core.by_batch.tentative import TentativeIntake
from testbed.core.checkpoints import NO_BATCH
from testbed.core.control import (
    Absent,
    Attach,
    Attached,
    Detach,
    Failure,
    Go,
    Passed,
    Promote,
    Ready,
    Rejoin,
    Restore,
    Stable,
    ToPartition,
    TurnedTentative,
    Unreadable,
)
from testbed.core.effects import PartitionEffect, Publish, Tell
from testbed.core.frames import BORDERS, FrameKind, decode_log
from testbed.core.layout import PartitionLayout
from testbed.core.partition import Partition, PartitionLimits, Rebuilt
from testbed.core.protocol import Protocol
from testbed.core.snapshots import Core
from testbed.operators import Delivery, Sink
from testbed.operators.state import State

MOST_AHEAD = 3  # so many checkpoints a source's copy may be ahead of the stable line: nobody else holds it back


class BatchedPartition(Partition):
    """Goes on while neighbours are restored: its channels with them begin anew in the epoch of that recovery.

    The checkpoint of a sink is stored once the output before it is out, since nobody would make that output again.

    If told that input is absent, it goes on without. From the first batch that misses input until it is restored it is
    tentative: it takes no checkpoint, and what it sends and puts out is set apart from what is exact.

    A copy of a partition is one, too, but muted: it takes in and processes what its primary does, and lets nothing out
    until it is promoted. It takes no checkpoints. It tells when it passes the border of one, since it can replace its
    primary only if it is not behind the recovery line. It gets nothing that is tentative, so it is always exact.
    """

    _intake: TentativeIntake
    _sending: BatchSending
    _processing: BatchProcessing
    _input: BatchSource

    def __init__(
        self,
        layout: PartitionLayout,
        partitions: int,
        schemas: Sequence[pa.Schema],
        protocol: type[Protocol],
        limits: PartitionLimits,
        batching: Batching,
    ) -> None:
        self._batching = batching
        self._reached, self._out = NO_BATCH, NO_BATCH
        self._unpublished: deque[int] = deque()
        self._kept_back: deque[tuple[int, PartitionEffect]] = deque()
        self._withheld, self._promoted_in, self._has_ended = WithheldOutput(), -1, False
        super().__init__(layout, partitions, schemas, protocol, limits)

    def take_effects(self) -> list[PartitionEffect]:
        effects = super().take_effects()
        return self._withheld.hold(self.batch, effects) if self.muted else effects

    @property
    def muted(self) -> bool:
        """Whether it is a copy that has not been promoted."""
        return self._sending.muted

    @property
    def wants_input(self) -> bool:
        return super().wants_input and not (self.muted and self.snapshots_ahead >= MOST_AHEAD)

    @property
    def snapshots_ahead(self) -> int:
        """How many checkpoints after the stable line it is."""
        return self._snapshots.last - self.retained.number

    @property
    def idle(self) -> bool:
        return super().idle and not self._unpublished and not self.tentative

    @property
    def tentative(self) -> bool:
        """Whether it has gone on without some of its input."""
        return self._sending.tentative

    @property
    def batch(self) -> int:
        """The last batch that it has finished."""
        return self._intake.batch if self.inputs else self._input.at.batch

    @property
    def repeats(self) -> bool:
        return super().repeats or self.batch < self._reached or self._lags_behind_output or self.tentative

    @property
    def _lags_behind_output(self) -> bool:
        """Whether this is a sink of which more is out than it has processed, or which does not know yet."""
        return 0 in self._unpublished or self.batch + 1 < self._out

    @property
    def retained(self) -> Retained:
        """What it keeps for receivers that may go back."""
        return self._sending.retained

    @property
    def awaiting_go(self) -> frozenset[int]:
        """The output channels that have begun anew and wait for `Go`."""
        return self._sending.awaiting_go

    @property
    def unheard(self) -> frozenset[int]:
        """The output channels whose receivers are known to have failed."""
        return self._sending.unheard

    def receives_in(self, channel: int) -> int:
        """The epoch in which it receives on an input channel."""
        return self._intake.epoch(channel)

    def credit(self, channel: int) -> int:
        """How many more frames it may send on an output channel."""
        return self._sending.credit(channel)

    @property
    def held_up(self) -> bool:
        """Whether it waits for a receiver to take something."""
        return self._sending.congested

    @property
    def at_border(self) -> bool:
        """Whether it is between two batches."""
        return self._intake.at_border

    @property
    def withheld_bytes(self) -> int:
        """Size of the output that it does not let out because it is a copy [bytes]."""
        return self._withheld.size_bytes

    @property
    def states(self) -> dict[str, State]:
        """The state of its operator by name."""
        return self._processing.states

    @property
    def copy_ends(self) -> dict[int, tuple[int, int]]:
        """By output channel whose receiver has a copy, the epoch and the credit of the link to the copy."""
        return self._sending.copies.ends

    def owes(self, channel: int) -> int:
        """For how many frames that it has it will give credit back on an input channel."""
        return self._intake.owes(channel)

    def restore(self, message: Restore, objects: Mapping[str, bytes], rebuilt: Rebuilt | None = None) -> None:
        super().restore(message, objects, rebuilt)
        if message.muted:
            self._go()  # nobody waits for what it sends

    def on_order(self, message: ToPartition) -> None:
        if isinstance(message, Rejoin):
            self._intake.rejoin(message.epoch, message.inputs)
            self._sending.rejoin(message.epoch, message.outputs, message.number)
            arrived = self._intake.arrived(message.inputs)
            self._effects.append(Tell(Ready(self.number, message.epoch, arrived)))
        elif isinstance(message, Promote):
            self._promote(message.epoch)
        elif isinstance(message, Attach):
            self._sending.attach(message.epoch, message.outputs, message.number)
        elif isinstance(message, Attached):
            self._sending.copies.release(message.epoch, dict(message.arrived))
        elif isinstance(message, Detach):
            self._sending.copies.detach(message.outputs)
        elif isinstance(message, Go) and message.epoch != self.epoch:
            self._sending.go_on(message.epoch, dict(message.arrived))
        elif message.epoch == self.epoch and isinstance(message, Stable):
            self._sending.trim(message.number)
            self._withheld.trim(self._batching.first_behind(message.number))
        elif message.epoch == self.epoch and isinstance(message, Absent):
            self._intake.miss([each.id for each in self.inputs if each.sender in message.partitions])
        elif message.epoch == self.epoch:
            super().on_order(message)
            if isinstance(message, Failure):
                self._sending.lose(message.partitions)
            elif isinstance(message, Go):
                self._reached = message.reached
                self._sending.go_on(message.epoch, dict(message.arrived))
                if self.layout.element == Sink(Delivery.EXACTLY_ONCE) and self._promoted_in != self.epoch:
                    self._publish(Publish(0, ()))

    def _promote(self, epoch: int) -> None:
        """Begin a life in this epoch as the primary: output that was withheld first, then what comes.

        A sink asks at once what is out, and not when all go on, since numbers are published in order.
        """
        self.epoch = self._promoted_in = epoch
        channels = [channel.id for channel in self.inputs]
        self._intake.rejoin(epoch, channels)
        self._sending.promote(epoch)
        self._unpublished.clear()
        if self.layout.element == Sink(Delivery.EXACTLY_ONCE):
            self._publish(Publish(0, ()))
        for effect in self._withheld.take():
            if isinstance(effect, Publish):
                self._publish(effect)
            else:
                self._effects.append(effect)
        self._effects.append(Tell(Ready(self.number, epoch, self._intake.arrived(channels))))

    def on_published(self, number: int) -> None:
        super().on_published(number)
        self._out = max(number, self._out)
        while self._unpublished and self._unpublished[0] <= number:
            self._unpublished.popleft()
        while self._kept_back and (not self._unpublished or self._kept_back[0][0] < self._unpublished[0]):
            self._effects.append(self._kept_back.popleft()[1])

    def on_progress(self) -> None:
        super().on_progress()
        self._sending.retained.retry()

    def on_spilled(self, key: str) -> None:
        """The store has retained output."""
        self._sending.retained.on_spilled(key)

    def on_spill_refused(self, key: str) -> None:
        """The store refused retained output."""
        self._sending.retained.on_refused(key)

    def on_fetched(self, key: str, data: bytes) -> None:
        """Retained output has been read back."""
        self._sending.on_fetched(key, decode_log(data, self._schemas))

    def on_unreadable(self, key: str) -> None:
        """Retained output is lost: whoever needs it can only get it if this partition goes back, too."""
        if key in self._sending.retained.keys:
            self._effects.append(Tell(Unreadable(self.number, self.epoch, key)))

    def step(self, channel: int) -> None:
        self._intake.begin()
        if self._intake.tentative and not self.tentative:
            self._turn_tentative()
        if self._intake.batch == LAST_BATCH and not self.tentative:
            self._come_to_end()
        frame = self._intake.head(channel)
        if frame.kind is FrameKind.DATA:
            self._protocol.on_message(frame)
        self._intake.take(channel)
        self._processing.process(frame)
        if frame.kind in BORDERS and self._intake.at_border:
            end_batch = self._end_tentative_batch if self.tentative else self._end_batch
            end_batch(self._intake.batch)

    def checkpoint(self, number: int | None = None, forced: bool = False) -> None:
        if self.muted:
            number = self._snapshots.last + 1 if number is None else number
            self._snapshots.pass_over(self._processing.states, number)
            self._sending.mark(number)
            self._effects.append(Tell(Passed(self.number, self.epoch, number)))
            return
        super().checkpoint(number, forced)
        self._sending.mark(self._snapshots.last)
        if self._unpublished:
            self._kept_back.append((self._unpublished[-1], self._effects.pop()))

    def _end_batch(self, batch: int) -> None:
        published = self._processing.end_batch(batch)
        if published is not None:
            self._publish(published)
        self._sending.end_batch(batch)
        self._protocol.on_border(self._batching.checkpoint_at(batch))

    def _come_to_end(self) -> None:
        """Nothing but the end of the input is left."""
        if not self._has_ended:
            self._has_ended = True
            last = self._intake.finished if self.inputs else self._input.at.batch
            self._protocol.on_end(self._batching.next_checkpoint(last))

    def _turn_tentative(self) -> None:
        self._sending.tentative = self._processing.tentative = True
        self._effects.append(Tell(TurnedTentative(self.number, self.epoch, self._intake.batch)))

    def _end_tentative_batch(self, batch: int) -> None:
        """Nothing of it is stored. What a sink has of a batch whose exact output is out is of no use."""
        output = self._processing.end_tentative_batch(batch, self._batching.end_ns(batch))
        if output is not None and batch + 1 > self._out:
            self._effects.append(output)
        self._sending.end_batch(batch)

    def _publish(self, effect: Publish) -> None:
        self._effects.append(effect)
        self._unpublished.append(effect.number)

    def _assemble(self, limits: PartitionLimits) -> None:
        layout = self.layout
        common = self._snapshots, self._watermarks, self.tally, self._effects
        bounds = limits.frames_in_flight, limits.records_per_message, limits.retained_bytes
        self._intake = TentativeIntake(layout, self.tally, self._effects)
        self._sending = BatchSending(layout, self._protocol, *common, *bounds)
        self._processing = BatchProcessing(layout, self._sending, *common)
        self._input = BatchSource(
            layout,
            self._batching,
            self._processing,
            self._sending,
            self._snapshots,
            self._watermarks,
            self._end_batch,
            self._come_to_end,
        )

    def _restore_channels(self, message: Restore, core: Core, objects: Mapping[str, bytes]) -> None:
        self._reached, self._out = NO_BATCH, NO_BATCH
        self._unpublished.clear()
        self._kept_back.clear()
        self._withheld = WithheldOutput()
        self._processing.forget_output()
        self._has_ended = core.last
        self._intake.restore_at(self.epoch, core.received, core.batch)
        self._sending.restore_at(self.epoch, core.sent, message.checkpoint.number, message.muted)
        self._input.restore_at(Cut(core.batch, None, core.position, core.skipped), core.ended)

    def _core(self) -> Core:
        core = replace(super()._core(), last=self._has_ended)
        if self.inputs:
            return replace(core, batch=self._intake.finished)
        at = self._input.at
        return replace(core, batch=at.batch, position=at.position, skipped=at.skipped)


def is_muted(partition: Partition) -> bool:
    """Whether it is a copy that has not been promoted."""
    return isinstance(partition, BatchedPartition) and partition.muted
