"""One simulated run of a dataflow, step by step.

One step is one event: a frame, a message or a stored object arrives, a partition processes one frame, a
source reads one batch, a timer fires, a worker crashes. Which, is drawn from those that can happen. Channels keep their
order and delay as they like. A crash takes a worker with all its partitions, what it had not stored, and some of what
it had sent last. Under suspicion a worker is replaced as well, but it goes on as if nothing were: as does a host that
the coordinator can't reach.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import replace
from functools import partial
from random import Random

import pyarrow as pa

from testbed.core.by_batch.cutting import Batching
from testbed.core.by_batch.partition import BatchedPartition, is_muted
from testbed.core.control import (
    Dismiss,
    Promote,
    Restore,
    Stored,
    Unreadable,
    decode_message,
    encode_message,
)
from testbed.core.coordinator.coordinator import Coordinator, Phase
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import (
    CoordinatorEffect,
    Delete,
    Discard,
    Fetch,
    Grant,
    Order,
    Placed,
    Publish,
    PublishTentative,
    Send,
    Spill,
    Store,
    Sweep,
    SweepCopy,
    Tell,
    Write,
)
from testbed.core.partition.partition import Partition, PartitionLimits
from testbed.core.protocol import Protocol
from testbed.core.recovery import RecoveryStrategy
from testbed.operators import Source
from testbed.output_log.partition import LoggedPartition, keeps_log
from testbed.output_log.policies import OpensOnly, Policy
from testbed.simulation.budget import DrawnBudget
from testbed.simulation.checks import Checks
from testbed.simulation.faults import Fault, FaultSchedule, is_moment, spoil
from testbed.simulation.network import Network
from testbed.simulation.outcome import Observer, Row, SimulationResult, Stuck, add_rows
from testbed.simulation.storage import Storage
from testbed.simulation.workers import LEAVE, Event, SimulatedWorker
from testbed.stores.store import UnreadableObject

RETURNS = 0.05  # share of steps at which a worker that is away may come, so that others go on for a while without it
Inputs = Mapping[str, Sequence[Sequence[pa.RecordBatch]]]


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
        recovery: RecoveryStrategy | None = None,
        batching: Batching | None = None,
        expected: Counter[Row] | None = None,
        standby: int = 0,
        tentative: bool = False,
        returns: float = RETURNS,
        policy: Policy | None = None,
    ) -> None:
        """`inputs`: for each source and each of its partitions the batches; `refusals`: share of writes
        that the store refuses; `timers`: share of steps at which a timer may fire, too; `expected`: what a run without
        faults publishes, if that is known; `standby`: workers beyond the slots; `tentative`: whether survivors go on
        without absent input; `returns`: share of steps at which a worker that is away may come;
        `policy`: of partitions that keep an output log.
        """
        self.layout, self.protocol, self.outcome = layout, protocol, SimulationResult()
        self._new_coordinator = partial(Coordinator, layout, protocol, slots, spare_lines, recovery, tentative)
        self.coordinator = self._new_coordinator()
        self._batching = batching or Batching(10, 2)
        if recovery is not None and recovery.from_sources:
            self._batching = replace(self._batching, per_checkpoint=None)
        self._away = 0
        self._policy = policy or OpensOnly()
        self._inputs, self._limits = inputs, limits or PartitionLimits()
        if recovery is None or not recovery.keeps_output():
            self._limits = replace(self._limits, retained_bytes=None)
        self._timers, self._returns = timers, returns
        self._observer = observer or Observer()
        self._random = Random(seed)
        self._storage = Storage(refusals, self._random, self.outcome)
        self.store = self._storage.objects
        self._faults = FaultSchedule(faults)
        self._partial = recovery is not None and recovery.partial
        self._from_sources = recovery is not None and recovery.from_sources
        self._schemas = [channel.schema for channel in layout.channels]
        self.network = Network(layout, protocol.by_batch, self._random)
        self._lost: deque[str] = deque()
        self._spoiling = self._ruining = self._falls_back = False
        self._fallback_epoch = 0
        self.workers: list[SimulatedWorker] = []
        self._isolated: list[SimulatedWorker] = []
        rest = self.network, self.workers, self._storage, self._limits, self._batching, expected
        self.checks = Checks(layout, protocol, *rest, self.coordinator)
        for _ in range(slots + standby):
            self._join()

    def run(self, most_steps: int = 20_000) -> SimulationResult:
        """Until every record is processed and published.

        Raises `Stuck` if that doesn't come about, and by batch `InvariantBroken` or `ContentChanged`.
        """
        while events := self._possible():
            self.outcome.steps += 1
            if self.outcome.steps > most_steps:
                raise Stuck(f"not finished after {most_steps} steps, the coordinator is {self.coordinator.phase.value}")
            if not self._strike():
                event, *arguments = self._random.choice(events)
                event(*arguments)
            self.checks.after_step()
        self.checks.at_end()
        for worker in self.workers:
            self.outcome.count(worker.partitions.values())
        return self.outcome

    def _possible(self) -> list[Event]:
        """Everything that can happen now, timers only sometimes or when there is nothing else; nothing at the end."""
        events: list[Event] = [(self._deliver, number) for number in self.network.busy]
        events += [(self._notice,)] if self._lost else []
        for worker in self._everyone():
            events += [(event, worker) for queue, event in self._queues(worker) if queue]
            for each in worker.ready.values():
                events += each
        if self._away and (not events or self._random.random() < self._returns):
            events.append((self._return,))
        if not events and self._finished():
            return []
        if not events or self._random.random() < self._timers:
            events += [(self._round_due,)] * (self.protocol.in_rounds * len(self.layout.partitions))
            events += [(self._timer, worker, number) for worker in self.workers for number in worker.partitions]
        return events

    def _queues(self, worker: SimulatedWorker) -> tuple[tuple[Sized, Callable[[SimulatedWorker], None]], ...]:
        """What is under way, and what happens when the first of it arrives."""
        return (
            (worker.orders, self._order),
            (worker.messages, self._message),
            (worker.storing, self._stored),
            (worker.publishing, self._publish),
        )

    def _ready(self, worker: SimulatedWorker, partition: Partition) -> list[Event]:
        """What a partition can do by itself."""
        if partition.wants_input:
            return [(self._read, worker, partition)]
        return [(self._step, worker, partition, channel) for channel in partition.ready_channels()]

    # What can happen.

    def _deliver(self, channel: int) -> None:
        frame = self.network.deliver(channel)
        for worker in self._everyone():
            self._at(worker, self.layout.channels[frame.channel].receiver, Partition.on_frame, frame)

    def _step(self, worker: SimulatedWorker, partition: Partition, channel: int) -> None:
        self._at(worker, partition.number, Partition.step, channel)

    def _read(self, worker: SimulatedWorker, partition: Partition) -> None:
        batches = self._inputs[partition.layout.operator][partition.layout.index]
        position, _ = partition.source_input.span
        batch = batches[position] if position < len(batches) else None
        self._at(worker, partition.number, Partition.on_input, batch, position + 1, position + 1 >= len(batches))

    def _timer(self, worker: SimulatedWorker, number: int) -> None:
        on_own_time = self.protocol.on_own_time and self._random.random() < 0.7
        self._at(worker, number, Partition.on_timer if on_own_time else Partition.on_progress)

    def _round_due(self) -> None:
        self.coordinator.on_round_due()
        self._coordinate()

    def _message(self, worker: SimulatedWorker) -> None:
        message = worker.next_message()
        if isinstance(message, Stored) and message.epoch == self.coordinator.epoch:
            self._observer.known(message.checkpoint)
        if isinstance(message, Unreadable) and message.epoch == self.coordinator.lives[message.partition]:
            self._falls_back = True
        self.coordinator.on_message(message)
        self._coordinate()

    def _notice(self) -> None:
        self.coordinator.on_lost(self._lost.popleft())
        self._coordinate()

    def _order(self, worker: SimulatedWorker) -> None:
        self.checks.batches.all_changed()
        number, data = worker.orders.popleft()
        if data == LEAVE:
            if (partition := worker.leave(number)) is not None:
                self._carry_out(worker, partition)
            return
        message = decode_message(data)
        if isinstance(message, Dismiss):
            worker.dismiss(number, message.epoch)
            return
        if isinstance(message, Restore | Promote):
            self.checks.begins(worker, number, message)
        if not isinstance(message, Restore):
            self._at(worker, number, Partition.on_order, message)
            return
        if number not in worker.partitions:
            worker.partitions[number] = self._partition(number)
        worker.restored[number] = message.checkpoint.number
        try:
            objects = self._storage.read(message)
        except UnreadableObject as error:
            self.outcome.fallbacks += 1
            worker.messages.append(encode_message(Unreadable(number, message.epoch, error.key)))
        else:
            self._at(worker, number, Partition.restore, message, objects)

    def _partition(self, number: int) -> Partition:
        layout, count = self.layout.partitions[number], len(self.layout.partitions)
        if keeps_log(layout, self.protocol):
            common = layout, count, self._schemas, self.protocol, self._limits, self._batching
            return LoggedPartition(*common, policy=self._policy, budget=DrawnBudget(self._random))
        if self.protocol.by_batch:
            return BatchedPartition(layout, count, self._schemas, self.protocol, self._limits, self._batching)
        return Partition(layout, count, self._schemas, self.protocol, self._limits)

    def _stored(self, worker: SimulatedWorker) -> None:
        """The store does what a partition has asked for."""
        number, asked = worker.storing.popleft()
        if reply := self._storage.carry_out(asked):
            event, arguments = reply
            self._at(worker, number, event, *arguments)

    def _publish(self, worker: SimulatedWorker) -> None:
        number, output = worker.publishing.popleft()
        if self._storage.publish(number, output):
            self.checks.published(self.outcome.published)
        self._at(worker, number, Partition.on_published, self._storage.published(number))

    # Faults.

    def _strike(self) -> bool:
        """Let the next fault happen if its moment has come."""
        is_now = partial(is_moment, workers=self.workers, coordinator=self.coordinator)
        if not self.workers or (fault := self._faults.strike(is_now)) is None:
            return False
        worker = self._random.choice(self.workers)
        self.workers.remove(worker)
        self.checks.batches.all_changed()
        self.outcome.crashes += 1
        self.outcome.count(worker.partitions.values())
        if fault.suspicion:
            self._isolated.append(worker)
            self.coordinator.on_lost(worker.name)
            self._coordinate()
        else:
            self.network.lose_sent(worker.partitions)
            self._lost.append(worker.name)
        self._spoiling |= fault.spoils
        self._ruining |= fault.ruins
        if fault.late:
            self._away += 1
        else:
            self._join()
        return True

    def _return(self) -> None:
        """A worker that was away comes, as a new one."""
        self._away -= 1
        self._join()

    def _join(self) -> None:
        worker = SimulatedWorker(f"worker-{self.outcome.joined}")
        self.outcome.joined += 1
        self.workers.append(worker)
        self.coordinator.on_joined(worker.name)
        self._coordinate()

    # Effects.

    def _at(self, worker: SimulatedWorker, number: int, event: Callable[..., None], *arguments: object) -> None:
        """Something happens to a partition, in the way of its kind, if the worker has it."""
        self.checks.batches.changed(number)
        partition = worker.partitions.get(number)
        if partition is not None:
            getattr(partition, event.__name__)(*arguments)
            self.checks.after_event(worker, partition)
            self._carry_out(worker, partition)

    def _carry_out(self, worker: SimulatedWorker, partition: Partition) -> None:
        grants: list[tuple[int, Grant]] = []
        for effect in partition.take_effects():
            self.checks.of_effect(worker, partition, effect)
            match effect:
                case Send(frame, to_copy):
                    self.network.send(frame, to_copy)
                case Grant(channel):
                    grants.append((self.layout.channels[channel].sender, effect))
                case Store() | Spill() | Fetch() | Discard():
                    worker.storing.append((partition.number, effect))
                case Write(batch):
                    add_rows(self.outcome.written, batch)
                case Publish():
                    worker.publishing.append((partition.number, effect))
                case PublishTentative(_, batches):
                    for batch in batches:
                        add_rows(self.outcome.tentative, batch)
                case Tell(message):
                    worker.messages.append(encode_message(message))
        worker.ready[partition.number] = self._ready(worker, partition)
        self.checks.after_effects(partition)
        for sender, grant in grants:
            for each in self._everyone():
                self._at(each, sender, Partition.on_credit, grant)

    def _effects(self) -> list[CoordinatorEffect]:
        """What the coordinator wants that may be done now."""
        return self.coordinator.take_effects()

    def _coordinate(self) -> None:
        self.checks.batches.all_changed()
        for effect in self._effects():
            match effect:
                case Order(name, partition, message):
                    found = [worker for worker in self.workers if worker.name == name]
                    for worker in found:
                        if self._partial and isinstance(message, Restore) and message.epoch != self._fallback_epoch:
                            self.checks.batches.check_restored(worker, partition)
                        if isinstance(message, Restore) and self.coordinator.epoch > 1 and not message.muted:
                            self.outcome.restored += 1
                        self.outcome.promoted += isinstance(message, Promote)
                        worker.orders.append((partition, encode_message(message)))
                case Delete(keys):
                    self._storage.delete(keys)
                case Placed():
                    continue
                case SweepCopy():
                    self._storage.delete(filter(effect.takes, self.store.keys()))
                case Sweep(epoch, _, partitions, promoted):
                    restored = partitions - promoted.keys()
                    for worker in self.workers:
                        worker.hear_of(each.number for each in self.layout.partitions if each.name in restored)
                    if self._falls_back:
                        self._fallback_epoch, self._falls_back = epoch, False
                    line = self.coordinator.history.line
                    self.outcome.recoveries += epoch > 1
                    self.outcome.resumed += any(each.number for each in line)
                    self._observer.recovering(epoch, line)
                    if self._from_sources:
                        self.checks.batches.restoring(partitions)
                    self._storage.delete(filter(effect.takes, self.store.keys()))
                    if self._spoiling:
                        needed = self.coordinator.history.needed_by_stable()
                        self._spoiling = not spoil(self.store, set(self.store.keys()) - needed, self._random)
                    if self._ruining:
                        self._ruining = not spoil(self.store, self.coordinator.history.needed_by_stable(), self._random)

    # Looking around.

    def _everyone(self) -> list[SimulatedWorker]:
        return self.workers + self._isolated

    def _finished(self) -> bool:
        away = self.network.busy or self._lost or self._away
        if self.coordinator.phase is not Phase.RUNNING or away or not all(worker.quiet for worker in self.workers):
            return False
        return all(
            is_muted(partition)
            or (partition.idle and (partition.source_input.ended or not isinstance(partition.layout.element, Source)))
            for worker in self.workers
            for partition in worker.partitions.values()
        )
