"""An operator partition that works batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from testbed.core.by_batch.cutting import LAST_BATCH, Batching, Cut
from testbed.core.by_batch.input_end import InputEnd
from testbed.core.by_batch.muted import WithheldOutput
from testbed.core.by_batch.processing import BatchProcessing
from testbed.core.by_batch.publications import Publications
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
    Trim,
    TurnedTentative,
    Waiting,
)
from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.effects import PartitionEffect, Publish, Tell
from testbed.core.frames import BORDERS, FrameKind
from testbed.core.partition.partition import Partition, PartitionLimits, Rebuilt
from testbed.core.partition.snapshots import Core
from testbed.core.protocol import Protocol
from testbed.operators import Delivery, Sink

MOST_AHEAD = 3  # checkpoints by which a source's copy may be ahead of the stable line: nothing else limits it
NO_LIFE = -1  # an epoch that no frame has


class BatchedPartition(Partition):
    """Goes on while neighbours are restored: its channels with them start again in the epoch of that recovery.

    The checkpoint of a sink is stored once the output before it is published, since that output would not be made
    again.

    If told that input is absent, it goes on without. From the first batch that misses input until it is restored it is
    tentative: it takes no checkpoint, and what it sends and emits is set apart from what is exact.

    A copy of a partition is one, too, but muted: it reads and processes what its primary does, and lets nothing out
    until it is promoted. It takes no checkpoints. It tells when it passes the border of one, since it can replace its
    primary only if it is not behind the recovery line. It gets nothing that is tentative, so it is always exact.

    promoted_in   the epoch in which it last took the place of its primary; -1 if it never did
    """

    intake: TentativeIntake
    sending: BatchSending
    processing: BatchProcessing
    source_input: BatchSource

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
        self._reached, self.promoted_in, self.withheld = NO_BATCH, -1, WithheldOutput()
        super().__init__(layout, partitions, schemas, protocol, limits)

    def take_effects(self) -> list[PartitionEffect]:
        effects = super().take_effects()
        return self.withheld.hold(self.batch, effects) if self.muted else effects

    @property
    def muted(self) -> bool:
        """Whether it is a copy that has not been promoted."""
        return self.sending.muted

    @property
    def wants_input(self) -> bool:
        if not super().wants_input:
            return False
        return not self.muted or self._snapshots.last - self.sending.retained.number < MOST_AHEAD

    @property
    def idle(self) -> bool:
        return super().idle and not self._publications.pending and not self.tentative

    @property
    def tentative(self) -> bool:
        """Whether it has gone on without some of its input."""
        return self.sending.tentative

    @property
    def batch(self) -> int:
        """The last batch that it has finished."""
        return self.intake.batch if self.inputs else self.source_input.at.batch

    @property
    def repeats(self) -> bool:
        lags = self.batch < self._reached or self._publications.is_ahead_of(self.batch)
        return super().repeats or lags or self.tentative

    def leave(self) -> None:
        super().leave()
        intake, sending, self.withheld = self.intake, self.sending, WithheldOutput()
        intake.restore_at(NO_LIFE, intake.received, intake.finished)  # what still comes for this life is stale
        sending.restore_at(self.epoch, sending.sent, sending.retained.number, sending.muted)  # it retains nothing

    def restore(self, message: Restore, objects: Mapping[str, bytes], rebuilt: Rebuilt | None = None) -> None:
        super().restore(message, objects, rebuilt)
        if message.muted:
            self._go()  # no receiver waits for its output

    def on_order(self, message: ToPartition) -> None:
        if isinstance(message, Rejoin):
            self.intake.rejoin(message.epoch, message.inputs)
            self.sending.rejoin(message.epoch, message.outputs, message.number)
            arrived = self.intake.arrived(message.inputs)
            self._effects.append(Tell(Ready(self.number, message.epoch, arrived)))
        elif isinstance(message, Promote):
            self._promote(message.epoch)
        elif isinstance(message, Attach):
            self.sending.attach(message.epoch, message.outputs, message.number)
        elif isinstance(message, Attached):
            self.sending.copies.release(message.epoch, dict(message.arrived))
        elif isinstance(message, Detach):
            self.sending.copies.detach(message.outputs)
        elif isinstance(message, Go) and message.epoch != self.epoch:
            self.sending.go_on(message.epoch, dict(message.arrived))
        elif message.epoch == self.epoch and isinstance(message, Stable):
            self.sending.trim(message.number)
            self.withheld.trim(self._batching.first_behind(message.number))
        elif message.epoch == self.epoch and isinstance(message, Trim):
            self.withheld.trim(message.number)
        elif message.epoch == self.epoch and isinstance(message, Absent):
            self.intake.miss([each.id for each in self.inputs if each.sender in message.partitions])
        elif message.epoch == self.epoch and isinstance(message, Waiting):
            self.sending.do_not_wait_for(message.partitions)
        elif message.epoch == self.epoch:
            super().on_order(message)
            if isinstance(message, Failure):
                self.sending.lose(message.partitions)
            elif isinstance(message, Go):
                self._reached = message.reached
                self.sending.go_on(message.epoch, dict(message.arrived))
                if self.layout.element == Sink(Delivery.EXACTLY_ONCE) and self.promoted_in != self.epoch:
                    self._publications.ask()

    def _promote(self, epoch: int) -> None:
        """Begin a life in this epoch as the primary: output that was withheld first, then what comes.

        A sink asks at once what is published, and not when all go on, since numbers are published in order.
        """
        self.epoch = self.promoted_in = epoch
        channels = [channel.id for channel in self.inputs]
        self.intake.rejoin(epoch, channels)
        self.sending.promote(epoch)
        self._publications.forget_pending()
        if self.layout.element == Sink(Delivery.EXACTLY_ONCE):
            self._publications.ask()
        for effect in self.withheld.take():
            if isinstance(effect, Publish):
                self._publications.publish(effect)
            else:
                self._effects.append(effect)
        self._effects.append(Tell(Ready(self.number, epoch, self.intake.arrived(channels))))

    def on_progress(self) -> None:
        super().on_progress()
        if self.running:
            self._effects += self._snapshots.ask_again()

    def on_published(self, number: int) -> None:
        super().on_published(number)
        self._publications.on_published(number)
        self.intake.held = self._publications.holds_tentative

    def step(self, channel: int) -> None:
        self.intake.begin()
        if self.intake.tentative and not self.tentative:
            self._turn_tentative()
        if self.intake.batch == LAST_BATCH and not self.tentative:
            self._input_end.reach(self.intake.finished)
        frame = self.intake.head(channel)
        if frame.kind is FrameKind.DATA:
            self._protocol.on_message(frame)
        self.intake.take(channel)
        self.processing.process(frame)
        if frame.kind in BORDERS and self.intake.at_border:
            end_batch = self._end_tentative_batch if self.tentative else self._end_batch
            end_batch(self.intake.batch)

    def checkpoint(self, number: int | None = None, forced: bool = False) -> None:
        if self.muted:
            number = self._snapshots.last + 1 if number is None else number
            self._snapshots.pass_over(self.processing.states, number)
            self.sending.mark(number)
            self._effects.append(Tell(Passed(self.number, self.epoch, number)))
            return
        super().checkpoint(number, forced)
        self.sending.mark(self._snapshots.last)
        self._publications.keep_back_last()

    def _end_batch(self, batch: int) -> None:
        published = self.processing.end_batch(batch)
        if published is not None:
            self._publications.publish(published)
        self.sending.end_batch(batch)
        self._protocol.on_border(self._batching.checkpoint_at(batch))

    def _turn_tentative(self) -> None:
        self.sending.tentative = self.processing.tentative = True
        self._effects.append(Tell(TurnedTentative(self.number, self.epoch, self.intake.batch)))

    def _end_tentative_batch(self, batch: int) -> None:
        """Nothing of it is stored. What a sink has of a batch whose exact output is published is of no use.

        While it is not known what is published, the sink reads no further batch: what waits would grow without bound.
        """
        output = self.processing.end_tentative_batch(batch, self._batching.end_ns(batch))
        if output is not None:
            self._publications.put_out(output)
            self.intake.held = self._publications.holds_tentative
        self.sending.end_batch(batch)

    def _assemble(self, limits: PartitionLimits) -> None:
        layout = self.layout
        self._publications = Publications(self._effects)
        self._input_end = InputEnd(self._protocol, self._batching)
        common = self._snapshots, self.watermarks, self.tally, self._effects
        bounds = limits.frames_in_flight, limits.records_per_message, limits.retained_bytes
        self.intake = TentativeIntake(layout, self.tally, self._effects)
        self.sending = BatchSending(layout, self._protocol, *common, *bounds)
        self.processing = BatchProcessing(layout, self.sending, *common)
        self.source_input = BatchSource(
            layout,
            self._batching,
            self.processing,
            self.sending,
            self._snapshots,
            self.watermarks,
            self._end_batch,
            self._input_end.reach,
        )

    def _restore_channels(self, message: Restore, core: Core, objects: Mapping[str, bytes]) -> None:
        self._reached = NO_BATCH
        self._publications.restore()
        self.withheld = WithheldOutput()
        self.processing.forget_output()
        self._input_end.restore(core.last)
        self.intake.restore_at(self.epoch, core.received, core.batch)
        self.sending.restore_at(self.epoch, core.sent, message.checkpoint.number, message.muted)
        self.source_input.restore_at(Cut(core.batch, None, core.position, core.skipped), core.ended)

    def _core(self) -> Core:
        core = replace(super()._core(), last=self._input_end.reached)
        if self.inputs:
            return replace(core, batch=self.intake.finished)
        at = self.source_input.at
        return replace(core, batch=at.batch, position=at.position, skipped=at.skipped)


def is_muted(partition: Partition) -> bool:
    """Whether it is a copy that has not been promoted."""
    return isinstance(partition, BatchedPartition) and partition.muted
