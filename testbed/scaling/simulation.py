"""A dataflow on many workers, event by event, in virtual time, under the protocols' own classes.

A worker has one CPU and hosts one partition of every operator, as `checkmate` deploys its queries. It does one thing at
a time: a checkpoint that is due, else, by turns, the next message of a partition whose output has credit or the next
batch of a source. What that costs comes from `Costs`. Records are counted and not made, so keys are spread evenly.

To hold large clusters, `group` messages of a channel go as one, which costs as much as all of them; the protocol's
hooks see one. Credit comes back at once, which flatters all protocols alike. A store serves each worker as if it were
alone.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import NamedTuple

from testbed.core.checkpoints import Checkpoint, Line, initial_line, is_needed
from testbed.core.frames import OVERHEAD_BYTES, Frame, FrameKind
from testbed.core.layout import Channel, Layout, PartitionLayout, Route
from testbed.core.protocol import Protocol, Runtime
from testbed.operators import Source
from testbed.scaling.costs import Costs

EPOCH = 1


class MessageGroup(NamedTuple):
    """`messages` of a channel that go as one, with so many records altogether."""

    frame: Frame
    messages: float
    rows: float


class ObjectSize(NamedTuple):
    """An object: messages in it, and bytes."""

    messages: float
    size: float


class Load(NamedTuple):
    """How a cluster is loaded: records of a message, which a source reads at once; and records a second of all sources
    together, None for as many as the cluster takes."""

    records_per_message: int
    per_second: float | None = None


@dataclass
class Totals:
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
class Restart:
    """What a failure would come to.

    line      where everybody goes back to
    seconds   until all have read what they need
    stored    checkpoints that were stored
    undone    those of them that lie beyond the line
    """

    line: Line
    seconds: float
    stored: int
    undone: int


class _Node(Runtime):
    """An operator partition, and the protocol's runtime for it."""

    def __init__(self, cluster: Cluster, layout: PartitionLayout) -> None:
        self.cluster, self.layout = cluster, layout
        self.number, self.partitions = layout.number, len(cluster.layout.partitions)
        self.inputs, self.outputs = layout.inputs, layout.outputs
        self.costs = cluster.costs.operators[layout.operator]
        self.is_source = isinstance(layout.element, Source)
        self.queued: deque[MessageGroup] = deque()
        self.waits: dict[int, deque[MessageGroup]] = {}
        self.outbox: dict[int, deque[MessageGroup]] = {channel.id: deque() for channel in self.outputs}
        self.credit = {channel.id: cluster.credit for channel in self.outputs}
        self.sent = {channel.id: 0 for channel in self.outputs}
        self.received = {channel.id: 0 for channel in self.inputs}
        self.unsent, self.is_listed, self.next_target = 0, False, layout.index
        self.carried_messages = self.carried_rows = 0.0
        self.spent_s, self.due_s = 0.0, 0.0
        self.last, self.rows_since = 0, 0.0
        self.logged: dict[int, int] = {}
        self.log_messages = self.log_bytes = 0.0
        self.protocol = cluster.protocol(self)

    @property
    def has_work(self) -> bool:
        return not self.unsent and (self.is_source or bool(self.queued))

    # What the protocol may ask.

    def checkpoint(self, number: int | None = None, forced: bool = False) -> None:
        self.last = self.last + 1 if number is None else number
        self.protocol.on_checkpoint(self.last)
        self.protocol.snapshot()
        self.spent_s += self.cluster.costs.checkpoint_s
        key, logged = f"{self.number}-{self.last}", self.logged
        log_key = f"log-{key}" if logged else None
        sizes = {key: ObjectSize(0.0, self.costs.state_bytes.of(1, self.rows_since))}
        if log_key:
            sizes[log_key] = ObjectSize(self.log_messages, self.log_bytes)
        self.rows_since, self.logged, self.log_messages, self.log_bytes = 0.0, {}, 0.0, 0.0
        sent, received = dict(self.sent), dict(self.received)
        taken = Checkpoint(self.number, self.last, EPOCH, sent, received, (key,), log_key, logged, forced)
        self.cluster.store(self, taken, sizes)

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
            records = self.cluster.batch_records
            self.spent_s += self.costs.step_s.of(self.cluster.group, records)
            self.rows_since += records
            self.cluster.totals.read_records += records
            self._emit(float(self.cluster.group), records)
            return
        message = self.queued.popleft()
        channel = message.frame.channel
        if channel in self.waits:
            self.waits[channel].append(message)
            return
        self._take(message)
        self.cluster.give_credit(channel)

    def post(self, channel: int) -> None:
        """Let what waits for credit go, as far as there is some."""
        waiting = self.outbox[channel]
        on_cycle = self.cluster.layout.channels[channel].on_cycle
        while waiting and self.credit[channel] > 0:
            self.credit[channel] -= 1
            self.unsent -= not on_cycle
            self.cluster.post(self, waiting.popleft())

    def _take(self, message: MessageGroup) -> None:
        frame = message.frame
        if self.cluster.is_remote(frame.channel):
            size = self._sizes(frame.channel, message)
            self.spent_s += self.cluster.costs.receive_s.of(message.messages, size)
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
            self.spent_s += self.cluster.costs.split_s * (parts - messages)
            for channel in targets:
                self._send_data(channel, parts / len(targets), rows / len(targets))

    def _targets(self, route: Route, messages: float) -> list[Channel]:
        """All channels if there is a message for each, or a group, else some of them by turns."""
        channels = route.channels
        some = min(len(channels), max(1, int(messages / self.cluster.group)))
        first, self.next_target = self.next_target, (self.next_target + some) % self.cluster.workers
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
        totals, frame = self.cluster.totals, message.frame
        totals.protocol_bytes += frame.protocol_bytes() * message.messages
        if frame.kind is FrameKind.DATA:
            totals.data_bytes += self.costs.sent_bytes.of(message.messages, message.rows)
        if self.cluster.is_remote(channel.id):
            self.spent_s += self.cluster.costs.send_s.of(message.messages, self._sizes(channel.id, message))
        self.outbox[channel.id].append(message)
        self.unsent += not channel.on_cycle

    def _sizes(self, channel: int, message: MessageGroup) -> float:
        """The bytes of a message, by the costs of who sends it."""
        if message.frame.kind is not FrameKind.DATA:
            return OVERHEAD_BYTES + len(message.frame.piggyback)
        sender = self.cluster.nodes[self.cluster.layout.channels[channel].sender]
        data_bytes = sender.costs.sent_bytes.of(message.messages, message.rows)
        return data_bytes + len(message.frame.piggyback) * message.messages

    def _hook(self, messages: float, hook: Callable, argument: object) -> bytes:
        """Call a hook, and let the worker spend what it was told that one takes."""
        begun_s = time.thread_time()
        found = hook(argument)
        totals = self.cluster.totals
        totals.hooks_s += time.thread_time() - begun_s
        totals.hooks += 1
        self.spent_s += self.cluster.hook_s * messages
        return found


@dataclass
class _Worker:
    """A CPU: `due` is what goes before all messages, `runnable` the partitions that could go on."""

    due: deque[tuple[_Node, Callable[[], None]]] = field(default_factory=deque)
    runnable: deque[_Node] = field(default_factory=deque)
    is_busy: bool = False
    store_free_s: float = 0.0


class Cluster:
    """One run; the same arguments give the same run.

    layout       with `workers` partitions of every operator
    interval_s   between checkpoints
    credit       messages under way on a channel, as `Limits.frames_in_flight`
    hook_s       CPU seconds that a hook of the protocol takes for one message
    group        so many messages go as one
    """

    def __init__(
        self,
        layout: Layout,
        protocol: type[Protocol],
        costs: Costs,
        load: Load,
        interval_s: float = 5.0,
        credit: int = 32,
        hook_s: float = 0.0,
        group: int = 1,
    ) -> None:
        """Raises `BadInput` for a protocol that can't protect the dataflow."""
        protocol.check(layout)
        self.layout, self.protocol, self.costs, self.hook_s = layout, protocol, costs, hook_s
        self.group, self.credit, self.interval_s = group, max(2, credit // group), interval_s
        self.workers = 1 + max(partition.index for partition in layout.partitions)
        self.totals, self.now_s = Totals(), 0.0
        self.checkpoint_seconds: list[float] = []
        self.taken: list[list[Checkpoint]] = [[at] for at in initial_line(layout)]
        self._stored: dict[str, ObjectSize] = {}
        self.batch_records = float(load.records_per_message * group)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._tick = count()
        self._round, self._unfinished, self._round_begun_s = 0, 0, 0.0
        self._workers = [_Worker() for _ in range(self.workers)]
        self.nodes = [_Node(self, each) for each in layout.partitions]
        sources = [node for node in self.nodes if node.is_source]
        self._period_s = self.batch_records * len(sources) / load.per_second if load.per_second else 0.0
        for place, node in enumerate(sources):
            self._at(self._period_s * place / len(sources), partial(self._begin, node))
        if protocol.in_rounds:
            self._at(interval_s, self._on_round_due)
        if protocol.on_own_time:
            for node in self.nodes:
                self._at(interval_s, partial(self._on_timer, node))

    def run(self, until_s: float) -> None:
        """Let virtual time go on to this second."""
        while self._events and self._events[0][0] <= until_s:
            self.now_s, _, event = heapq.heappop(self._events)
            event()
        self.now_s = until_s

    def restart(self) -> Restart:
        """What it would take now if all had to go back to the recovery line; changes nothing.

        A worker connects to all others, and reads its objects one after the other; those of logs become messages.
        """
        line = self.protocol.find_line(self.taken, self.layout.channels)
        seconds = [2 * self.costs.hop_s + (self.workers - 1) * self.costs.connect_s] * self.workers
        for at, of in zip(line, self.taken, strict=True):
            worker, up_to = self.nodes[at.partition].layout.index, [c for c in of if c.number <= at.number]
            states = [key for each in up_to for key in each.state_keys]
            logs = [c.log_key for c in up_to if c.log_key and is_needed(c, line, self.layout.channels, 0)]
            for messages, size in (self._stored[key] for key in (*states, *logs)):
                seconds[worker] += self.costs.read_s.of(1, size)
                seconds[worker] += self.costs.receive_s.of(messages, size if messages else 0.0)
        stored = [c for of in self.taken for c in of if c.number]
        undone = sum(c.number > line[c.partition].number for c in stored)
        return Restart(line, max(seconds), len(stored), undone)

    # What partitions ask of the world.

    def is_remote(self, channel: int) -> bool:
        """Whether the ends of a channel are on two workers."""
        ends = self.layout.channels[channel]
        return self.nodes[ends.sender].layout.index != self.nodes[ends.receiver].layout.index

    def post(self, sender: _Node, message: MessageGroup) -> None:
        """Send messages to the receiver of their channel, which gets them a hop later if it is on another worker."""
        channel = message.frame.channel
        receiver = self.nodes[self.layout.channels[channel].receiver]
        if self.is_remote(channel):
            self._at(self.now_s + self.costs.hop_s, partial(self._arrive, receiver, message))
        else:
            self._arrive(receiver, message)

    def give_credit(self, channel: int) -> None:
        """Let the sender of a channel send one message more."""
        sender = self.nodes[self.layout.channels[channel].sender]
        sender.credit[channel] += 1
        sender.post(channel)
        self._list(sender)

    def store(self, node: _Node, taken: Checkpoint, sizes: dict[str, ObjectSize]) -> None:
        """A worker writes one object after the other."""
        worker, begun_s = self._workers[node.layout.index], self.now_s
        seconds = self.costs.write_s.of(len(sizes), sum(each.size for each in sizes.values()))
        worker.store_free_s = max(worker.store_free_s, begun_s) + seconds
        self._at(worker.store_free_s, partial(self._on_stored, taken, begun_s, sizes))

    # Events.

    def _at(self, at_s: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (at_s, next(self._tick), event))

    def _begin(self, node: _Node) -> None:
        node.protocol.on_start()
        node.due_s = self.now_s
        self._list(node)

    def _arrive(self, receiver: _Node, message: MessageGroup) -> None:
        receiver.queued.append(message)
        self._list(receiver)

    def _list(self, node: _Node) -> None:
        """Let its worker come to this partition by and by, if it has something to do."""
        if node.is_listed or not node.has_work:
            return
        worker = self._workers[node.layout.index]
        if node.is_source and node.due_s > self.now_s:
            node.is_listed = True
            self._at(node.due_s, partial(self._wake, node))
            return
        node.is_listed = True
        worker.runnable.append(node)
        self._serve(worker)

    def _wake(self, node: _Node) -> None:
        node.is_listed = False
        self._list(node)

    def _serve(self, worker: _Worker) -> None:
        """Begin the next thing, unless one is under way."""
        while not worker.is_busy and (worker.due or worker.runnable):
            if worker.due:
                self._spend(worker, *worker.due.popleft())
                continue
            node = worker.runnable.popleft()
            node.is_listed = False
            if node.has_work:
                node.due_s += self._period_s
                self._spend(worker, node, node.work)

    def _spend(self, worker: _Worker, node: _Node, act: Callable[[], None]) -> None:
        """Do something now, and be busy for as long as it takes; what it sends leaves at the end."""
        worker.is_busy = True
        act()
        seconds, node.spent_s = node.spent_s, 0.0
        self._at(self.now_s + seconds, partial(self._finish, worker, node))

    def _finish(self, worker: _Worker, node: _Node) -> None:
        worker.is_busy = False
        for channel, waiting in node.outbox.items():
            if waiting:
                node.post(channel)
        self._list(node)
        self._serve(worker)

    def _due(self, node: _Node, act: Callable[[], None]) -> None:
        worker = self._workers[node.layout.index]
        worker.due.append((node, act))
        self._serve(worker)

    # Checkpoints.

    def _on_timer(self, node: _Node) -> None:
        self._due(node, node.protocol.on_timer)
        self._at(self.now_s + self.interval_s, partial(self._on_timer, node))

    def _on_round_due(self) -> None:
        """A round waits for the one before, as the coordinator has it."""
        self._at(self.now_s + self.interval_s, self._on_round_due)
        if self._unfinished:
            return
        self._round += 1
        self._unfinished, self._round_begun_s = len(self.nodes), self.now_s
        for node in self.nodes:
            if node.is_source:
                start = partial(node.protocol.on_round, self._round)
                self._at(self.now_s + self.costs.hop_s, partial(self._due, node, start))

    def _on_stored(self, taken: Checkpoint, begun_s: float, sizes: dict[str, ObjectSize]) -> None:
        self.taken[taken.partition].append(taken)
        self._stored |= sizes
        if not self.protocol.in_rounds:
            self.checkpoint_seconds.append(self.now_s - begun_s)
            return
        self._unfinished -= 1
        if not self._unfinished:
            self.checkpoint_seconds.append(self.now_s - self._round_begun_s)
