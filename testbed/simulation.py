"""A dataflow in one thread under a seeded schedule: every order of events that channels allow, and crashes anywhere.

One step is one event: a frame, a message or a stored object arrives, a partition processes one frame, a
source reads one batch, a timer fires, a worker crashes. Which, is drawn from those that can happen. Channels keep their
order and delay as they like. A crash takes a worker with all its partitions, what it had not stored, and some of what
it had sent last. Under suspicion a worker is replaced as well, but it goes on as if nothing were: as does a host that
the coordinator can't reach.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random

import pyarrow as pa

from experiments.errors import AftershockError
from testbed.core.by_batch.cutting import Batching, border_of
from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.checkpoints import Checkpoint, Line
from testbed.core.control import Restore, Stored, Unreadable, decode_message, encode_message
from testbed.core.coordinator import Coordinator, Phase
from testbed.core.effects import Delete, Grant, Order, Publish, Send, Store, Sweep, Tell, Write
from testbed.core.frames import Frame, FrameKind, FrameReader, encode
from testbed.core.layout import Layout
from testbed.core.partition import Partition, PartitionLimits
from testbed.core.progress import Tally
from testbed.core.protocol import Protocol
from testbed.core.recovery import Recovery
from testbed.operators import Source
from testbed.stores.store import MemoryStore, UnreadableObject

Inputs = Mapping[str, Sequence[Sequence[pa.RecordBatch]]]


class CrashMoment(Enum):
    """When a fault strikes: at any step, or while something delicate is under way."""

    ANY = "any"
    ALIGNING = "aligning"
    STORING = "storing"
    RESTORING = "restoring"
    REPLAYING = "replaying"


class ContentChanged(AftershockError):
    """A partition has sent two different things under one number."""


class Stuck(AftershockError):
    """The dataflow has not finished after so many steps."""


@dataclass(frozen=True)
class Fault:
    """A worker crashes, or is suspected to have, when it has been such a moment for `after` steps.

    late     its replacement comes at any time later, not at once
    spoils   and when everyone goes back, an object of the newest line has changed that the stable line can do without
    """

    moment: CrashMoment
    after: int
    suspicion: bool = False
    spoils: bool = False
    late: bool = False


class Observer:
    """Told of what the coordinator learns and decides."""

    def known(self, checkpoint: Checkpoint) -> None: ...

    def recovering(self, epoch: int, line: Line) -> None: ...


@dataclass
class SimulationResult:
    """What came out: of the exactly-once sinks what was published, of the plain ones what was written, row by row.

    recoveries   all of them; `resumed` those that did not go back to the beginning
    fallbacks    how often a partition could not read what it was to go back to
    """

    published: Counter[tuple] = field(default_factory=Counter)
    written: Counter[tuple] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    crashes: int = 0
    joined: int = 0
    recoveries: int = 0
    resumed: int = 0
    fallbacks: int = 0
    steps: int = 0


@dataclass
class _Worker:
    """A process with partitions; `listening` is over when the coordinator has given it up."""

    name: str
    partitions: dict[int, Partition] = field(default_factory=dict)
    ready: dict[int, list[tuple]] = field(default_factory=dict)
    orders: deque[tuple[int, bytes]] = field(default_factory=deque)
    messages: deque[bytes] = field(default_factory=deque)
    storing: deque[tuple[int, Store]] = field(default_factory=deque)
    publishing: deque[tuple[int, Publish]] = field(default_factory=deque)

    def queues(self, run: Simulation) -> tuple[tuple[deque, Callable], ...]:
        """What is under way, and what happens when the first of it arrives."""
        return (
            (self.orders, run._order),
            (self.messages, run._message),
            (self.storing, run._stored),
            (self.publishing, run._publish),
        )


class Simulation:
    """One run of a dataflow on `slots` workers; the same arguments give the same run."""

    def __init__(
        self,
        layout: Layout,
        protocol: type[Protocol],
        inputs: Inputs,
        seed: int,
        slots: int = 2,
        faults: Sequence[Fault] = (),
        spare_lines: int = 1,
        limits: PartitionLimits | None = None,
        refusals: float = 0.0,
        timers: float = 0.2,
        observer: Observer | None = None,
        recovery: Recovery | None = None,
        batching: Batching | None = None,
    ) -> None:
        """`inputs`: for each source and each of its partitions the batches; `refusals`: share of writes
        that the store refuses; `timers`: share of steps at which a timer may fire, too.
        """
        self.layout, self.protocol, self.outcome = layout, protocol, SimulationResult()
        self.store = MemoryStore()
        self.coordinator = Coordinator(layout, protocol, slots, spare_lines, recovery)
        self._batching = batching or Batching(10, 2)
        self._contents: dict[tuple[int, FrameKind, int], Frame] = {}
        self._away = 0
        self._inputs, self._limits = inputs, limits or PartitionLimits()
        self._refusals, self._timers = refusals, timers
        self._observer = observer or Observer()
        self._random = Random(seed)
        self._faults = [[fault, fault.after] for fault in faults]
        self._schemas = [channel.schema for channel in layout.channels]
        self._network: list[deque[Frame]] = [deque() for _ in layout.channels]
        self._lost: deque[str] = deque()
        self._spoiling = False
        self._committed: dict[int, int] = {}
        self._workers: list[_Worker] = []
        self._isolated: list[_Worker] = []
        for _ in range(slots):
            self._join()

    def run(self, most_steps: int = 20_000) -> SimulationResult:
        """Until every record is processed and published. Raises `Stuck` if that doesn't come about."""
        while events := self._possible():
            self.outcome.steps += 1
            if self.outcome.steps > most_steps:
                raise Stuck(f"not finished after {most_steps} steps, the coordinator is {self.coordinator.phase.value}")
            if not self._strike():
                event, *arguments = self._random.choice(events)
                event(*arguments)
        for worker in self._workers:
            self._count_all(worker)
        return self.outcome

    def _possible(self) -> list[tuple]:
        """Everything that can happen now, timers only sometimes or when there is nothing else; nothing at the end."""
        events: list[tuple] = [(self._deliver, number) for number, frames in enumerate(self._network) if frames]
        events += [(self._notice,)] if self._lost else []
        events += [(self._return,)] if self._away else []
        for worker in self._everyone():
            events += [(event, worker) for queue, event in worker.queues(self) if queue]
            for each in worker.ready.values():
                events += each
        if not events and self._finished():
            return []
        if not events or self._random.random() < self._timers:
            events += [(self._round_due,)] * (self.protocol.in_rounds * len(self.layout.partitions))
            events += [(self._timer, worker, number) for worker in self._workers for number in worker.partitions]
        return events

    def _ready(self, worker: _Worker, partition: Partition) -> list[tuple]:
        """What a partition can do by itself."""
        if partition.wants_input:
            return [(self._read, worker, partition)]
        return [(self._step, worker, partition, channel) for channel in partition.ready_channels()]

    # What can happen.

    def _deliver(self, channel: int) -> None:
        frame = self._network[channel].popleft()
        for worker in self._everyone():
            self._at(worker, self.layout.channels[channel].receiver, Partition.on_frame, frame)

    def _step(self, worker: _Worker, partition: Partition, channel: int) -> None:
        self._at(worker, partition.number, Partition.step, channel)

    def _read(self, worker: _Worker, partition: Partition) -> None:
        batches = self._inputs[partition.layout.operator][partition.layout.index]
        position, _ = partition.next_input
        batch = batches[position] if position < len(batches) else None
        self._at(worker, partition.number, Partition.on_input, batch, position + 1, position + 1 >= len(batches))

    def _timer(self, worker: _Worker, number: int) -> None:
        on_own_time = self.protocol.on_own_time and self._random.random() < 0.7
        self._at(worker, number, Partition.on_timer if on_own_time else Partition.on_progress)

    def _round_due(self) -> None:
        self.coordinator.on_round_due()
        self._coordinate()

    def _message(self, worker: _Worker) -> None:
        message = decode_message(worker.messages.popleft())
        if isinstance(message, Stored) and message.epoch == self.coordinator.epoch:
            self._observer.known(message.checkpoint)
        self.coordinator.on_message(message)
        self._coordinate()

    def _notice(self) -> None:
        self.coordinator.on_lost(self._lost.popleft())
        self._coordinate()

    def _order(self, worker: _Worker) -> None:
        number, data = worker.orders.popleft()
        message = decode_message(data)
        if not isinstance(message, Restore):
            self._at(worker, number, Partition.on_order, message)
            return
        if number not in worker.partitions:
            worker.partitions[number] = self._partition(number)
        try:
            objects = {key: self.store.get(key) for key in (*message.checkpoint.state_keys, *message.log_keys)}
        except UnreadableObject as error:
            self.outcome.fallbacks += 1
            worker.messages.append(encode_message(Unreadable(number, message.epoch, error.key)))
        else:
            self._at(worker, number, Partition.restore, message, objects)

    def _partition(self, number: int) -> Partition:
        layout, count = self.layout.partitions[number], len(self.layout.partitions)
        if self.protocol.by_batch:
            return BatchedPartition(layout, count, self._schemas, self.protocol, self._limits, self._batching)
        return Partition(layout, count, self._schemas, self.protocol, self._limits)

    def _stored(self, worker: _Worker) -> None:
        number, effect = worker.storing.popleft()
        checkpoint = effect.checkpoint
        if self._random.random() < self._refusals:
            self._at(worker, number, Partition.on_store_failed, checkpoint.epoch, checkpoint.number)
            return
        for key, content in effect.objects.items():
            self.store.put(key, content())
        self._at(worker, number, Partition.on_stored, checkpoint.epoch, checkpoint.number)

    def _publish(self, worker: _Worker) -> None:
        number, effect = worker.publishing.popleft()
        if effect.number > self._committed.get(number, 0):
            self._committed[number] = effect.number
            for batch in effect.batches:
                _add_rows(self.outcome.published, batch)
        self._at(worker, number, Partition.on_published, self._committed.get(number, 0))

    # Faults.

    def _strike(self) -> bool:
        """Let the next fault happen if its moment has come."""
        if not self._faults or not self._workers or not self._is_moment(self._faults[0][0].moment):
            return False
        self._faults[0][1] -= 1
        if self._faults[0][1] >= 0:
            return False
        fault, _ = self._faults.pop(0)
        worker = self._random.choice(self._workers)
        self._workers.remove(worker)
        self.outcome.crashes += 1
        self._count_all(worker)
        if fault.suspicion:
            self._isolated.append(worker)
            self.coordinator.on_lost(worker.name)
        else:
            self._lose_frames(worker)
            self._lost.append(worker.name)
        self._spoiling |= fault.spoils
        if fault.late:
            self._away += 1
        else:
            self._join()
        return True

    def _return(self) -> None:
        """A worker that was away comes, as a new one."""
        self._away -= 1
        self._join()

    def _spoil(self) -> None:
        found = sorted(set(self.store.keys()) - self.coordinator.history.needed_by_stable())
        self._spoiling &= not found
        if found:
            key = self._random.choice(found)
            data = self.store.objects[key]
            self.store.objects[key] = data[:-1] + bytes([data[-1] ^ 1])

    def _is_moment(self, moment: CrashMoment) -> bool:
        partitions = [partition for worker in self._workers for partition in worker.partitions.values()]
        return {
            CrashMoment.ANY: lambda: True,
            CrashMoment.ALIGNING: lambda: any(partition.aligning for partition in partitions),
            CrashMoment.STORING: lambda: any(worker.storing for worker in self._workers),
            CrashMoment.RESTORING: lambda: self.coordinator.phase is Phase.RESTORING and self.coordinator.epoch > 1,
            CrashMoment.REPLAYING: lambda: any(partition.replaying for partition in partitions),
        }[moment]()

    def _lose_frames(self, worker: _Worker) -> None:
        """Of what the worker had sent, the last frames may not have got out."""
        for channel in self.layout.channels:
            if channel.sender in worker.partitions:
                frames, epoch = self._network[channel.id], worker.partitions[channel.sender].sends_in(channel.id)
                own = sum(frame.epoch == epoch for frame in frames)
                for _ in range(self._random.randint(0, own)):
                    if frames[-1].epoch == epoch:
                        frames.pop()

    def _join(self) -> None:
        worker = _Worker(f"worker-{self.outcome.joined}")
        self.outcome.joined += 1
        self._workers.append(worker)
        self.coordinator.on_joined(worker.name)
        self._coordinate()

    # Effects.

    def _at(self, worker: _Worker, number: int, event: Callable, *arguments: object) -> None:
        """Something happens to a partition, in the way of its kind, if the worker has it."""
        partition = worker.partitions.get(number)
        if partition is not None:
            getattr(partition, event.__name__)(*arguments)
            self._carry_out(worker, partition)

    def _carry_out(self, worker: _Worker, partition: Partition) -> None:
        grants: list[tuple[int, Grant]] = []
        for effect in partition.take_effects():
            match effect:
                case Send(frame):
                    if self.protocol.by_batch:
                        self._compare(frame)
                    self._network[frame.channel].append(self._through_the_wire(frame))
                case Grant(channel):
                    grants.append((self.layout.channels[channel].sender, effect))
                case Store():
                    worker.storing.append((partition.number, effect))
                case Write(batch):
                    _add_rows(self.outcome.written, batch)
                case Publish():
                    worker.publishing.append((partition.number, effect))
                case Tell(message):
                    worker.messages.append(encode_message(message))
        worker.ready[partition.number] = self._ready(worker, partition)
        for sender, grant in grants:
            for each in self._everyone():
                self._at(each, sender, Partition.on_credit, grant)

    def _coordinate(self) -> None:
        for effect in self.coordinator.take_effects():
            match effect:
                case Order(name, partition, message):
                    found = [worker for worker in self._workers if worker.name == name]
                    for worker in found:
                        worker.orders.append((partition, encode_message(message)))
                case Delete(keys):
                    for key in keys:
                        self.store.delete(key)
                case Sweep(epoch, keep, partitions):
                    line = self.coordinator.history.line
                    self.outcome.recoveries += epoch > 1
                    self.outcome.resumed += any(each.number for each in line)
                    self._observer.recovering(epoch, line)
                    for key in set(self.store.keys()) - keep:
                        if key.partition("/")[0] in partitions:
                            self.store.delete(key)
                    if self._spoiling:
                        self._spoil()

    def _compare(self, frame: Frame) -> None:
        """With batches a number names a content, in every life of the sender. Raises `ContentChanged` otherwise."""
        number = frame.sequence if frame.kind is FrameKind.DATA else border_of(frame)
        known = self._contents.setdefault((frame.channel, frame.kind, number), frame)
        if replace(known, epoch=0, batch=None) != replace(frame, epoch=0, batch=None) or known.batch != frame.batch:
            raise ContentChanged(f"frame {number} of channel {frame.channel} is not what it was before")

    def _through_the_wire(self, frame: Frame) -> Frame:
        """Now and then as bytes and back: what doesn't survive that must not pass here."""
        if self._random.random() < 0.9:
            return frame
        (received,) = FrameReader(self._schemas).feed(encode(frame))
        return received

    # Looking around.

    def _everyone(self) -> list[_Worker]:
        return self._workers + self._isolated

    def _finished(self) -> bool:
        if self.coordinator.phase is not Phase.RUNNING or any(self._network) or self._lost or self._away:
            return False
        queues = (queue for w in self._workers for queue in (w.orders, w.messages, w.storing, w.publishing))
        return not any(queues) and all(
            partition.idle and (partition.ended or not isinstance(partition.layout.element, Source))
            for worker in self._workers
            for partition in worker.partitions.values()
        )

    def _count_all(self, worker: _Worker) -> None:
        total = self.outcome.tally
        for partition in worker.partitions.values():
            for name, value in vars(partition.tally).items():
                setattr(total, name, getattr(total, name) + value)


def _add_rows(counter: Counter[tuple], batch: pa.RecordBatch) -> None:
    counter.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
