"""An operator partition as a state machine: frames, input, timers and messages go in, effects come out.

The caller delivers what arrives in order for each channel, calls `step` for the channels that are ready in whatever
order it likes, and carries out the effects. Nothing here blocks.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from experiments.errors import AftershockError, BadInput
from testbed.core.control import Failure, Go, Published, Ready, Restore, Round, Stable, ToPartition
from testbed.core.effects import Grant, PartitionEffect, Publish, Send, Tell, Write
from testbed.core.frames import Frame, FrameKind, data_bytes
from testbed.core.graph import Element
from testbed.core.layout import Channel, PartitionLayout, split_by_key
from testbed.core.protocol import Protocol, Runtime
from testbed.core.readings import Piece, Reading, Rereading
from testbed.core.snapshots import Core, Snapshots
from testbed.operators import END_OF_TIME_NS, START_OF_TIME_NS, Delivery, Operator, Sink, Source
from testbed.operators.state import State

SIZED_EVERY = 32
Rebuilt: TypeAlias = tuple[Element, Core]


class ChannelGap(AftershockError):
    """Data on a channel is missing: a fault of the runtime or of a protocol, never to be passed over."""


@dataclass(frozen=True)
class PartitionLimits:
    """What bounds a partition's memory and its messages.

    frames_in_flight      the credit of a channel: frames sent and not yet processed
    records_per_message   more rows than that are sent as several frames
    changes_per_full      a checkpoint is a full copy of the state after so many with changes only
    """

    frames_in_flight: int = 32
    records_per_message: int = 1024
    changes_per_full: int = 10

    def __post_init__(self) -> None:
        for name in ("frames_in_flight", "records_per_message"):
            if getattr(self, name) < 1:
                raise BadInput(name, getattr(self, name), "1 or more")


@dataclass
class Tally:
    """What a partition has counted since it was made.

    data_bytes        of data sent but for what the protocol added, by the size of every 32nd message
    duplicates        frames that had been received before
    stale             frames of other epochs
    """

    records_in: int = 0
    records_out: int = 0
    data_bytes: int = 0
    protocol_bytes: int = 0
    checkpoints: int = 0
    forced: int = 0
    duplicates: int = 0
    stale: int = 0


class Partition(Runtime):
    """One operator partition under one protocol. It does nothing until it is told to restore and to go.

    Whatever arrives counts in one `epoch`, that of the last `Restore`; what is of another is dropped.
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
        self._ports = {channel.id: channel.port for channel in layout.inputs}
        self.tally = Tally()
        self._schemas, self._limits = schemas, limits
        self._protocol = protocol(self)
        self._snapshots = Snapshots(layout, limits.changes_per_full)
        self._effects: list[PartitionEffect] = []
        self._again = Rereading()
        self.epoch, self._running = -1, False
        self._last_served = -1

    # What the caller may ask.

    def take_effects(self) -> list[PartitionEffect]:
        """The effects since the last call, to be carried out in this order."""
        effects, self._effects = self._effects, []
        return effects

    def ready_channels(self) -> list[int]:
        """The input channels that `step` may take from; those of a cycle go first, lest the cycle fill up."""
        if not self._running or self._congested():
            return []
        ready = [c for c in self.inputs if self._queues[c.id] and c.id not in self._blocked]
        returning = [c.id for c in ready if c.on_cycle]
        return returning or [c.id for c in ready]

    def next_channel(self) -> int | None:
        """The ready channel whose turn it is; None if none is ready."""
        ready = self.ready_channels()
        if not ready:
            return None
        self._last_served = next((channel for channel in ready if channel > self._last_served), ready[0])
        return self._last_served

    @property
    def wants_input(self) -> bool:
        """Whether this is a source that can take in a batch now."""
        is_source = isinstance(self.layout.element, Source)
        return is_source and self._running and (bool(self._again) or not self._core.ended) and not self._congested()

    @property
    def next_input(self) -> tuple[int, int | None]:
        """From where a source wants input; and before which position that must end, if it is read again."""
        return self._again.span if self._again else (self._core.position, None)

    @property
    def position(self) -> int:
        """How far a source has read."""
        return self._core.position

    @property
    def ended(self) -> bool:
        """Whether this is a source that has read everything."""
        return self._core.ended

    @property
    def counts(self) -> tuple[int, int]:
        """How many frames it has sent and processed on all its channels, by what its state knows of."""
        return sum(self._core.sent.values()), sum(self._core.received.values())

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do until something arrives, and no output waits to be published."""
        queues = (*self._queues.values(), *self._outbox.values())
        return self._running and not any(queues) and not self._again and not self._snapshots.holds_output

    @property
    def finished(self) -> bool:
        """Whether all input has ended and nothing is left to do; never behind a cycle, where no end is known."""
        return self._running and self._core.watermark_ns == END_OF_TIME_NS and self.idle

    @property
    def aligning(self) -> bool:
        """Whether some input channel has to wait for others."""
        return self._running and bool(self._blocked)

    @property
    def replaying(self) -> bool:
        """Whether data from the logs has yet to be sent."""
        return self._running and (
            bool(self._again)
            or any(queue and queue[0].sequence <= self._replayed_to[channel] for channel, queue in self._outbox.items())
        )

    # What happens to a partition.

    def leave(self) -> None:
        """Stop here and let the operator's state go: a recovery begins, and there is not room for it twice."""
        self._running, self._operator = False, self.layout.element

    def rebuilt(self, message: Restore, objects: Mapping[str, bytes]) -> Rebuilt:
        """The operator and the rest as they were at a checkpoint. Changes nothing here: another thread may ask."""
        operator = copy.deepcopy(self.layout.element)
        if isinstance(operator, Operator):
            operator.open()
        return operator, self._snapshots.fill(message, _states(operator), objects)

    def restore(self, message: Restore, objects: Mapping[str, bytes], rebuilt: Rebuilt | None = None) -> None:
        """Go back to a checkpoint with these objects, those of its state and its logs, and with what `rebuilt` gave."""
        self.epoch, self._running, self._effects = message.epoch, False, []
        self._operator, self._core = rebuilt or self.rebuilt(message, objects)
        self._snapshots.restore(message)
        self._protocol.on_recovery(self._core.protocol)
        self._queues: dict[int, deque[Frame]] = {channel.id: deque() for channel in self.inputs}
        self._arrived, self._blocked = dict(self._core.received), set[int]()
        self._outbox: dict[int, deque[Frame]] = {channel.id: deque() for channel in self.outputs}
        self._credit = {channel.id: self._limits.frames_in_flight for channel in self.outputs}
        self._replayed_to = dict(self._core.sent)
        self._announced = dict.fromkeys(self._credit, START_OF_TIME_NS)
        for frame in self._snapshots.replayed(message, objects, self._schemas):
            self._outbox[frame.channel].append(replace(frame, epoch=self.epoch))
        self._again = Rereading(self._snapshots.reread(message, objects))
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
            for number, frames in self._snapshots.take_publishable(message.number):
                self._effects.append(Publish(number, tuple(f.batch for f in frames if f.batch is not None)))

    def on_frame(self, frame: Frame) -> None:
        """A frame has arrived. Raises `ChannelGap` if data before it has not."""
        if frame.epoch != self.epoch:
            self.tally.stale += 1
            return
        if frame.kind is FrameKind.DATA:
            if frame.sequence <= self._arrived[frame.channel]:
                self.tally.duplicates += 1
                self._effects.append(Grant(frame.channel, self.epoch, 1))
                return
            self._arrived[frame.channel] += 1
        if frame.sequence != self._arrived[frame.channel]:
            expected = self._arrived[frame.channel]
            raise ChannelGap(f"{self.layout.name}, channel {frame.channel}: {frame.sequence} came, not {expected}")
        self._queues[frame.channel].append(frame)

    def on_credit(self, grant: Grant) -> None:
        """The receiver of an output channel can take more."""
        if grant.epoch == self.epoch:
            self._credit[grant.channel] += grant.frames
            self._flush(grant.channel)

    def on_input(self, batch: pa.RecordBatch | None, position: int, ended: bool = False) -> None:
        """A source has read a batch; `position` is where it reads on, and `ended` says that nothing more will come.

        Raises `SourceChanged` for another batch than before where it reads something again.
        """
        if self._again:
            self._read_again(batch, position)
            return
        start, self._core.position, self._core.ended = self._core.position, position, ended
        if batch is not None and batch.num_rows:
            self._snapshots.begin_reading(Reading(start, position, batch.num_rows, self._core.watermark_ns))
            self._emit(self._source.process(batch))
            if self._source.time is not None:
                self._core.watermark_ns = batch.column(self._source.time)[-1].as_py()
        if ended:
            self._core.watermark_ns = END_OF_TIME_NS
            self.on_progress()

    def on_progress(self) -> None:
        """Time to tell how far event time is on channels that had no data for long."""
        if self._running and not self._again:
            at = self._core.position
            self._snapshots.begin_reading(Reading(at, at, 0, self._core.watermark_ns))
            for channel in self.outputs:  # on a cycle nobody listens to it
                if not channel.on_cycle and self._announced[channel.id] < self._core.watermark_ns:
                    self._send(channel, None)

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
        """A sink's output up to a checkpoint is out."""
        self._effects.append(Tell(Published(self.number, number)))

    def step(self, channel: int) -> None:
        """Process the frame at the head of a channel that is ready."""
        frame = self._queues[channel][0]
        if frame.kind is FrameKind.DATA:
            self._protocol.on_message(frame)
            self._queues[channel].popleft()
            self._core.received[channel] = frame.sequence
            self._process(frame)
        else:
            self._queues[channel].popleft()
            (self._protocol.on_marker if frame.kind is FrameKind.MARKER else self._protocol.on_control)(frame)
        self._effects.append(Grant(channel, self.epoch, 1))

    # What the protocol may ask.

    def checkpoint(self, number: int | None = None, forced: bool = False) -> None:
        number = self._snapshots.last + 1 if number is None else number
        self._protocol.on_checkpoint(number)
        self._core.protocol = self._protocol.snapshot()
        self.tally.checkpoints += 1
        self.tally.forced += forced
        self._effects.append(self._snapshots.take(self._core, _states(self._operator), self.epoch, number, forced))

    def block(self, channel: int) -> None:
        self._blocked.add(channel)

    def unblock(self) -> None:
        self._blocked.clear()

    def send(self, kind: FrameKind, channel: Channel, content: bytes) -> None:
        sequence = self._core.sent[channel.id]
        self._post(Frame(kind, self.epoch, channel.id, sequence, self._core.watermark_ns, content))

    # The rest is its own.

    @property
    def _source(self) -> Source:
        if not isinstance(self._operator, Source):
            raise TypeError(f"{self.layout.name} is no source: it takes no input")
        return self._operator

    def _congested(self) -> bool:
        """Whether something waits for credit. What returns to a cycle doesn't count: it would wait for itself."""
        return any(self._outbox[channel.id] for channel in self.outputs if not channel.on_cycle)

    def _go(self) -> None:
        self._running = True
        for channel in self.outputs:
            self._flush(channel.id)
        self._tell_again()
        self._protocol.on_start()

    def _read_again(self, batch: pa.RecordBatch | None, position: int) -> None:
        """Part of what was in flight was read again."""
        whole = self._again.add(batch, position)
        if whole is not None:
            self._send_again(list(self._pieces(self._source.process(whole))))
            self._tell_again()

    def _tell_again(self) -> None:
        """Where a source told only how far event time was it needs no input to do so again. After all that was in
        flight comes what is new."""
        while self._again and not self._again.first.rows:
            told = self._again.first.last
            self._send_again([(channel, None) for channel in self.outputs if channel.id in told])
        if self._core.watermark_ns > START_OF_TIME_NS:
            self.on_progress()

    def _send_again(self, pieces: list[Piece]) -> None:
        for frame in self._again.pop().frames(self.epoch, pieces):
            self._outbox[frame.channel].append(frame)
            self._flush(frame.channel)

    def _process(self, frame: Frame) -> None:
        if isinstance(self._operator, Sink):
            self._deliver(self._operator, frame)
        elif frame.batch is not None and isinstance(self._operator, Operator):
            self.tally.records_in += frame.rows
            self._emit(self._operator.process(self._ports[frame.channel], frame.batch))
        self._advance(frame)

    def _deliver(self, sink: Sink, frame: Frame) -> None:
        self.tally.records_in += frame.rows
        if sink.delivery is Delivery.EXACTLY_ONCE:
            self._snapshots.hold(frame)
        elif frame.batch is not None:
            self._effects.append(Write(frame.batch))

    def _advance(self, frame: Frame) -> None:
        marks = self._core.watermarks
        if frame.channel in marks and frame.watermark_ns > marks[frame.channel]:
            marks[frame.channel] = frame.watermark_ns
            lowest = min(marks.values())
            if lowest > self._core.watermark_ns:
                if isinstance(self._operator, Operator):
                    self._emit(self._operator.advance(lowest))
                self._core.watermark_ns = lowest
                if lowest == END_OF_TIME_NS:
                    self.on_progress()

    def _emit(self, batch: pa.RecordBatch | None) -> None:
        if batch is None or not batch.num_rows:
            return
        self.tally.records_out += batch.num_rows
        for channel, rows in self._pieces(batch):
            self._send(channel, rows)

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[Piece]:
        """The messages that a batch makes, in order."""
        most = self._limits.records_per_message
        for route in self.layout.routes:
            for channel, rows in split_by_key(batch, route):
                for start in range(0, rows.num_rows, most):
                    yield channel, rows if rows.num_rows <= most else rows.slice(start, most)

    def _send(self, channel: Channel, batch: pa.RecordBatch | None) -> None:
        self._core.sent[channel.id] += 1
        self._announced[channel.id] = self._core.watermark_ns
        piggyback = self._protocol.before_send(channel)
        sequence, watermark_ns = self._core.sent[channel.id], self._core.watermark_ns
        frame = Frame(FrameKind.DATA, self.epoch, channel.id, sequence, watermark_ns, piggyback, batch)
        if sequence % SIZED_EVERY == 1:
            self.tally.data_bytes += SIZED_EVERY * data_bytes(frame)
        if self._protocol.logs:
            self._snapshots.log(frame)
        self._post(frame)

    def _post(self, frame: Frame) -> None:
        self.tally.protocol_bytes += frame.protocol_bytes()
        self._outbox[frame.channel].append(frame)
        if self._running:
            self._flush(frame.channel)

    def _flush(self, channel: int) -> None:
        waiting = self._outbox[channel]
        while waiting and self._credit[channel] > 0:
            self._credit[channel] -= 1
            self._effects.append(Send(waiting.popleft()))


def _states(element: Element) -> dict[str, State]:
    return element.states() if isinstance(element, Operator) else {}
