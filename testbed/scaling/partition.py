"""An operator partition of the simulated cluster: how it handles messages, and what that costs its worker."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar
from typing import Protocol as Interface

from testbed.core.checkpoints import Checkpoint
from testbed.core.dataflow.layout import Channel, Layout, PartitionLayout, Route
from testbed.core.frames import OVERHEAD_BYTES, Frame, FrameKind
from testbed.core.protocol import Protocol, Runtime
from testbed.operators import Source
from testbed.scaling.costs import Costs

EPOCH = 1

A = TypeVar("A")  # what a hook takes
R = TypeVar("R")  # what it returns


class MessageGroup(NamedTuple):
    """`messages` of a channel that go together as one."""

    frame: Frame
    messages: float
    rows: float


class ObjectSize(NamedTuple):
    """An object: messages in it, and bytes."""

    messages: float
    size: float


@dataclass
class ClusterTotals:
    """What a cluster has counted: CPU seconds and calls of the protocol's hooks are those of this process."""

    read_records: float = 0.0
    data_bytes: float = 0.0
    protocol_bytes: float = 0.0
    hooks: int = 0
    hooks_s: float = 0.0

    @property
    def message_overhead(self) -> float:
        """Bytes sent over those without the protocol's."""
        return 1 + self.protocol_bytes / self.data_bytes


@dataclass(frozen=True)
class Setup:
    """What a cluster runs, and what that costs.

    workers        each hosts one partition of every operator
    credit         groups of messages that may be under way on a channel
    hook_s         CPU seconds that a hook of the protocol takes for one message
    group          how many messages go together as one
    batch_records  records that a source reads at once
    """

    layout: Layout
    protocol: type[Protocol]
    costs: Costs
    workers: int
    credit: int
    hook_s: float
    group: int
    batch_records: float

    def is_remote(self, channel: int) -> bool:
        """Whether the ends of a channel are on two workers."""
        ends, partitions = self.layout.channels[channel], self.layout.partitions
        return partitions[ends.sender].index != partitions[ends.receiver].index


class Environment(Interface):
    """What a partition asks of the cluster that it is in."""

    def post(self, partition: SimulatedPartition, message: MessageGroup) -> None:
        """Send messages to the receiver of their channel."""

    def give_credit(self, channel: int) -> None:
        """Let the sender of a channel send one group of messages more."""

    def store(self, partition: SimulatedPartition, taken: Checkpoint, sizes: dict[str, ObjectSize]) -> None:
        """Write the objects of a checkpoint."""


class SimulatedPartition(Runtime):
    """An operator partition, and the protocol's runtime for it."""

    def __init__(self, setup: Setup, layout: PartitionLayout, environment: Environment, totals: ClusterTotals) -> None:
        """`totals`: of the cluster, which the partition counts in."""
        self.setup, self.layout, self.environment, self.totals = setup, layout, environment, totals
        self.number, self.partitions = layout.number, len(setup.layout.partitions)
        self.inputs, self.outputs = layout.inputs, layout.outputs
        self.costs = setup.costs.operators[layout.operator]
        self.is_source = isinstance(layout.element, Source)
        self.queued: deque[MessageGroup] = deque()
        self.waits: dict[int, deque[MessageGroup]] = {}
        self.outbox: dict[int, deque[MessageGroup]] = {channel.id: deque() for channel in self.outputs}
        self.credit = {channel.id: setup.credit for channel in self.outputs}
        self.sent = {channel.id: 0 for channel in self.outputs}
        self.received = {channel.id: 0 for channel in self.inputs}
        self.unsent, self.is_listed, self.next_target = 0, False, layout.index
        self.carried_messages = self.carried_rows = 0.0
        self.spent_s, self.due_s = 0.0, 0.0
        self.last, self.rows_since = 0, 0.0
        self.logged: dict[int, int] = {}
        self.log_messages = self.log_bytes = 0.0
        self.protocol = setup.protocol(self)

    @property
    def has_work(self) -> bool:
        """Whether its worker may give it a turn: it has input, and no output that waits for credit."""
        return not self.unsent and (self.is_source or bool(self.queued))

    # What the protocol may ask.

    def checkpoint(self, number: int | None = None, forced: bool = False) -> None:
        self.last = self.last + 1 if number is None else number
        self.protocol.on_checkpoint(self.last)
        self.protocol.snapshot()
        self.spent_s += self.setup.costs.checkpoint_s
        key, logged = f"{self.number}-{self.last}", self.logged
        log_key = f"log-{key}" if logged else None
        sizes = {key: ObjectSize(0.0, self.costs.state_bytes.of(1, self.rows_since))}
        if log_key:
            sizes[log_key] = ObjectSize(self.log_messages, self.log_bytes)
        self.rows_since, self.logged, self.log_messages, self.log_bytes = 0.0, {}, 0.0, 0.0
        sent, received = dict(self.sent), dict(self.received)
        taken = Checkpoint(self.number, self.last, EPOCH, sent, received, (key,), log_key, logged, forced)
        self.environment.store(self, taken, sizes)

    def block(self, channel: int) -> None:
        self.waits.setdefault(channel, deque())

    def unblock(self) -> None:
        waits, self.waits = self.waits, {}
        for messages in reversed(waits.values()):
            self.queued.extendleft(reversed(messages))

    def send(self, kind: FrameKind, channel: Channel, content: bytes) -> None:
        frame = Frame(kind, EPOCH, channel.id, self.sent[channel.id], 0, content)
        self._send(channel, MessageGroup(frame, 1.0, 0.0))

    # What a worker does with it.

    def work(self) -> None:
        """Take the next message, or read the next batch."""
        if self.is_source:
            records = self.setup.batch_records
            self.spent_s += self.costs.step_s.of(self.setup.group, records)
            self.rows_since += records
            self.totals.read_records += records
            self._emit(float(self.setup.group), records)
            return
        message = self.queued.popleft()
        channel = message.frame.channel
        if channel in self.waits:
            self.waits[channel].append(message)
            return
        self._take(message)
        self.environment.give_credit(channel)

    def post(self, channel: int) -> None:
        """Let what waits for credit go, as far as there is some."""
        waiting = self.outbox[channel]
        returning = self.setup.layout.channels[channel].returning
        while waiting and self.credit[channel] > 0:
            self.credit[channel] -= 1
            self.unsent -= not returning
            self.environment.post(self, waiting.popleft())

    def _take(self, message: MessageGroup) -> None:
        frame = message.frame
        if self.setup.is_remote(frame.channel):
            size = self._sizes(frame.channel, message)
            self.spent_s += self.setup.costs.receive_s.of(message.messages, size)
        if frame.kind is not FrameKind.DATA:
            (self.protocol.on_marker if frame.kind is FrameKind.MARKER else self.protocol.on_control)(frame)
            return
        self._hook(message.messages, self.protocol.on_message, frame)
        self.received[frame.channel] = frame.sequence
        self.rows_since += message.rows
        self.spent_s += self.costs.step_s.of(message.messages, message.rows)
        made = self.costs.rows_out * message.rows
        self._emit(min(message.messages, made), made)

    def _emit(self, messages: float, rows: float) -> None:
        """What comes to less than one message waits for more."""
        self.carried_messages += messages
        self.carried_rows += rows
        if self.carried_messages < 1:
            return
        messages, rows = self.carried_messages, self.carried_rows
        self.carried_messages = self.carried_rows = 0.0
        for route in self.layout.routes:
            parts = max(messages, min(rows, messages * len(route.channels)))
            targets = self._targets(route, parts)
            self.spent_s += self.setup.costs.split_s * (parts - messages)
            for channel in targets:
                self._send_data(channel, parts / len(targets), rows / len(targets))

    def _targets(self, route: Route, messages: float) -> list[Channel]:
        """All channels if there is a message for each, or a group, else some of them by turns."""
        channels = route.channels
        some = min(len(channels), max(1, int(messages / self.setup.group)))
        first, self.next_target = self.next_target, (self.next_target + some) % self.setup.workers
        return [channels[(first + i) % len(channels)] for i in range(some)]

    def _send_data(self, channel: Channel, messages: float, rows: float) -> None:
        self.sent[channel.id] += 1
        piggyback = self._hook(messages, self.protocol.before_send, channel)
        if self.protocol.logs:
            self.logged[channel.id] = self.sent[channel.id]
            self.log_messages += messages
            self.log_bytes += self.costs.log_bytes.of(messages, rows) + len(piggyback) * messages
            self.spent_s += self.costs.log_s.of(messages, rows)
        frame = Frame(FrameKind.DATA, EPOCH, channel.id, self.sent[channel.id], 0, piggyback)
        self._send(channel, MessageGroup(frame, messages, rows))

    def _send(self, channel: Channel, message: MessageGroup) -> None:
        frame = message.frame
        self.totals.protocol_bytes += frame.protocol_bytes() * message.messages
        if frame.kind is FrameKind.DATA:
            self.totals.data_bytes += self.costs.sent_bytes.of(message.messages, message.rows)
        if self.setup.is_remote(channel.id):
            self.spent_s += self.setup.costs.send_s.of(message.messages, self._sizes(channel.id, message))
        self.outbox[channel.id].append(message)
        self.unsent += not channel.returning

    def _sizes(self, channel: int, message: MessageGroup) -> float:
        """The bytes of a message, by the costs of who sends it."""
        if message.frame.kind is not FrameKind.DATA:
            return OVERHEAD_BYTES + len(message.frame.piggyback)
        sender = self.setup.layout.partitions[self.setup.layout.channels[channel].sender]
        data_bytes = self.setup.costs.operators[sender.operator].sent_bytes.of(message.messages, message.rows)
        return data_bytes + len(message.frame.piggyback) * message.messages

    def _hook(self, messages: float, hook: Callable[[A], R], argument: A) -> R:
        """Call a hook, and let the worker spend what it was told that one takes."""
        begun_s = time.thread_time()
        found = hook(argument)
        self.totals.hooks_s += time.thread_time() - begun_s
        self.totals.hooks += 1
        self.spent_s += self.setup.hook_s * messages
        return found
