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
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import NamedTuple

from testbed.core.checkpoints import Checkpoint, Line, initial_line, is_needed
from testbed.core.dataflow.layout import Layout
from testbed.core.protocol import Protocol
from testbed.scaling.costs import Costs
from testbed.scaling.partition import ClusterTotals, MessageGroup, ObjectSize, Setup, SimulatedPartition


class Load(NamedTuple):
    """How a cluster is loaded: records of a message, which a source reads at once; and records a second of all sources
    together, None for as many as the cluster takes."""

    records_per_message: int
    per_second: float | None = None


@dataclass(frozen=True)
class Restart:
    """What a failure would come to.

    line      where everybody rolls back to
    seconds   until all have read what they need
    stored    checkpoints that were stored
    undone    those of them that lie beyond the line
    """

    line: Line
    seconds: float
    stored: int
    undone: int


@dataclass
class _Worker:
    """A CPU: `due` is what goes before all messages, `runnable` the partitions that could go on."""

    due: deque[tuple[SimulatedPartition, Callable[[], None]]] = field(default_factory=deque)
    runnable: deque[SimulatedPartition] = field(default_factory=deque)
    is_busy: bool = False
    store_free_s: float = 0.0


class Cluster:
    """One run; the same arguments give the same run.

    layout       with `workers` partitions of every operator
    interval_s   between checkpoints
    credit       messages under way on a channel, as `PartitionLimits.frames_in_flight`
    hook_s       CPU seconds that a hook of the protocol takes for one message
    group        how many messages go together as one
    staggered    whether workers take their own checkpoints one after the other, evenly spread over the interval
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
        staggered: bool = False,
    ) -> None:
        """Raises `BadInput` for a protocol that can't protect the dataflow."""
        protocol.check(layout)
        self.layout, self.protocol, self.costs, self.interval_s = layout, protocol, costs, interval_s
        self.workers = 1 + max(partition.index for partition in layout.partitions)
        records = float(load.records_per_message * group)
        self._setup = Setup(layout, protocol, costs, self.workers, max(2, credit // group), hook_s, group, records)
        self.totals, self.now_s = ClusterTotals(), 0.0
        self.checkpoint_seconds: list[float] = []
        self.taken: list[list[Checkpoint]] = [[at] for at in initial_line(layout)]
        self._stored: dict[str, ObjectSize] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._tick = count()
        self._round, self._unfinished, self._round_begun_s = 0, 0, 0.0
        self._workers = [_Worker() for _ in range(self.workers)]
        self.partitions = [SimulatedPartition(self._setup, each, self, self.totals) for each in layout.partitions]
        sources = [partition for partition in self.partitions if partition.is_source]
        self._period_s = records * len(sources) / load.per_second if load.per_second else 0.0
        for place, partition in enumerate(sources):
            self._at(self._period_s * place / len(sources), partial(self._begin, partition))
        if protocol.in_rounds:
            self._at(interval_s, self._on_round_due)
        if protocol.on_own_time:
            for partition in self.partitions:
                share = (1 + partition.layout.index) / self.workers if staggered else 1.0
                self._at(share * interval_s, partial(self._on_timer, partition))

    def run(self, until_s: float) -> None:
        """Let virtual time go on to this second."""
        while self._events and self._events[0][0] <= until_s:
            self.now_s, _, event = heapq.heappop(self._events)
            event()
        self.now_s = until_s

    def restart(self) -> Restart:
        """What it would take now if all had to roll back to the recovery line; changes nothing.

        A worker connects to all others, and reads its objects one after the other; those of logs become messages.
        """
        line = self.protocol.find_line(self.taken, self.layout.channels)
        seconds = [2 * self.costs.hop_s + (self.workers - 1) * self.costs.connect_s] * self.workers
        for at, of in zip(line, self.taken, strict=True):
            worker, up_to = self.partitions[at.partition].layout.index, [c for c in of if c.number <= at.number]
            states = [key for each in up_to for key in each.state_keys]
            logs = [c.log_key for c in up_to if c.log_key and is_needed(c, line, self.layout.channels, 0)]
            for messages, size in (self._stored[key] for key in (*states, *logs)):
                seconds[worker] += self.costs.read_s.of(1, size)
                seconds[worker] += self.costs.receive_s.of(messages, size if messages else 0.0)
        stored = [c for of in self.taken for c in of if c.number]
        undone = sum(c.number > line[c.partition].number for c in stored)
        return Restart(line, max(seconds), len(stored), undone)

    # What partitions ask of the world.

    def post(self, partition: SimulatedPartition, message: MessageGroup) -> None:
        """Send messages to the receiver of their channel, which gets them a hop later if it is on another worker."""
        channel = message.frame.channel
        receiver = self.partitions[self.layout.channels[channel].receiver]
        if self._setup.is_remote(channel):
            self._at(self.now_s + self.costs.hop_s, partial(self._arrive, receiver, message))
        else:
            self._arrive(receiver, message)

    def give_credit(self, channel: int) -> None:
        """Let the sender of a channel send one message more."""
        sender = self.partitions[self.layout.channels[channel].sender]
        sender.credit[channel] += 1
        sender.post(channel)
        self._list(sender)

    def store(self, partition: SimulatedPartition, taken: Checkpoint, sizes: dict[str, ObjectSize]) -> None:
        """A worker writes one object after the other."""
        worker, begun_s = self._workers[partition.layout.index], self.now_s
        seconds = self.costs.write_s.of(len(sizes), sum(each.size for each in sizes.values()))
        worker.store_free_s = max(worker.store_free_s, begun_s) + seconds
        self._at(worker.store_free_s, partial(self._on_stored, taken, begun_s, sizes))

    # Events.

    def _at(self, at_s: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (at_s, next(self._tick), event))

    def _begin(self, partition: SimulatedPartition) -> None:
        partition.protocol.on_start()
        partition.due_s = self.now_s
        self._list(partition)

    def _arrive(self, receiver: SimulatedPartition, message: MessageGroup) -> None:
        receiver.queued.append(message)
        self._list(receiver)

    def _list(self, partition: SimulatedPartition) -> None:
        """Put this partition into its worker's queue, if it has something to do."""
        if partition.is_listed or not partition.has_work:
            return
        worker = self._workers[partition.layout.index]
        if partition.is_source and partition.due_s > self.now_s:
            partition.is_listed = True
            self._at(partition.due_s, partial(self._wake, partition))
            return
        partition.is_listed = True
        worker.runnable.append(partition)
        self._serve(worker)

    def _wake(self, partition: SimulatedPartition) -> None:
        partition.is_listed = False
        self._list(partition)

    def _serve(self, worker: _Worker) -> None:
        """Begin the next thing, unless one is under way."""
        while not worker.is_busy and (worker.due or worker.runnable):
            if worker.due:
                self._spend(worker, *worker.due.popleft())
                continue
            partition = worker.runnable.popleft()
            partition.is_listed = False
            if partition.has_work:
                partition.due_s += self._period_s
                self._spend(worker, partition, partition.work)

    def _spend(self, worker: _Worker, partition: SimulatedPartition, act: Callable[[], None]) -> None:
        """Do something now, and be busy for as long as it takes; what it sends leaves at the end."""
        worker.is_busy = True
        act()
        seconds, partition.spent_s = partition.spent_s, 0.0
        self._at(self.now_s + seconds, partial(self._finish, worker, partition))

    def _finish(self, worker: _Worker, partition: SimulatedPartition) -> None:
        worker.is_busy = False
        for channel, waiting in partition.outbox.items():
            if waiting:
                partition.post(channel)
        self._list(partition)
        self._serve(worker)

    def _due(self, partition: SimulatedPartition, act: Callable[[], None]) -> None:
        worker = self._workers[partition.layout.index]
        worker.due.append((partition, act))
        self._serve(worker)

    # Checkpoints.

    def _on_timer(self, partition: SimulatedPartition) -> None:
        self._due(partition, partition.protocol.on_timer)
        self._at(self.now_s + self.interval_s, partial(self._on_timer, partition))

    def _on_round_due(self) -> None:
        """A round waits for the one before, as the coordinator has it."""
        self._at(self.now_s + self.interval_s, self._on_round_due)
        if self._unfinished:
            return
        self._round += 1
        self._unfinished, self._round_begun_s = len(self.partitions), self.now_s
        for partition in self.partitions:
            if partition.is_source:
                start = partial(partition.protocol.on_round, self._round)
                self._at(self.now_s + self.costs.hop_s, partial(self._due, partition, start))

    def _on_stored(self, taken: Checkpoint, begun_s: float, sizes: dict[str, ObjectSize]) -> None:
        self.taken[taken.partition].append(taken)
        self._stored |= sizes
        if not self.protocol.in_rounds:
            self.checkpoint_seconds.append(self.now_s - begun_s)
            return
        self._unfinished -= 1
        if not self._unfinished:
            self.checkpoint_seconds.append(self.now_s - self._round_begun_s)
