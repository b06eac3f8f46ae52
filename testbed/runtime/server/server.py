"""The coordinator's server: slots join and leave, orders go out, reports come in, and the journal is written."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from experiments.errors import EnvironmentFailure
from journal.events.testbed import (
    Draining,
    Finished,
    GuestRefused,
    Recovering,
    Report,
    RunPhase,
    SlotFailed,
    WorkerJoined,
    WorkerLost,
)
from journal.writer import Journal
from testbed.core.control import Stored, decode_message, encode_message
from testbed.core.coordinator.coordinator import Coordinator, Phase
from testbed.core.effects import Delete, Order, Placed, Sweep, SweepCopy
from testbed.core.shapes import UnknownMessage
from testbed.operators import Sink
from testbed.runtime.job import Job
from testbed.runtime.network.admission import Admission, Fields
from testbed.runtime.network.messages import (
    SLOT,
    Broken,
    Count,
    Hello,
    Peers,
    SlotError,
    SlotMessage,
    SlotStatus,
    Stop,
    decode,
)
from testbed.runtime.network.wire import NO_PARTITION, Address, block, turn
from testbed.runtime.server.cost_reports import CostReports
from testbed.runtime.server.following_costs import FollowingCosts
from testbed.runtime.server.following_load import following_load
from testbed.runtime.server.garbage_collection import GarbageCollector
from testbed.runtime.server.guest import Guest
from testbed.runtime.server.milestones import Milestones
from testbed.runtime.server.missing_input import MissingInput
from testbed.runtime.server.record_keeper import RecordKeeper
from testbed.runtime.server.run_events import RunEvents
from testbed.runtime.server.source_ends import SourceEnds
from testbed.runtime.server.store_watch import StoreWatch
from testbed.runtime.server.validation import MessageValidation
from testbed.runtime.server.waiting_queries import WaitingQueries
from testbed.runtime.stillness import Stillness

PROGRESS_S, TURN_S = 0.5, 0.02
DRAINING_ROUND_S = 0.25
MOST_FAILURES, FAILURES_EACH = 10, 2  # of all slots, and of each if that comes to more: one outage may end them all
BROKEN_GRACE_S = 1.0  # a connection breaks when a slot dies, too, which is told apart by the slot's own connection


@dataclass(frozen=True)
class _Break:
    """A slot's connection to another broke. That counts when it is due [s, monotonic], if the worker is still there."""

    due_s: float
    epoch: int
    worker: str


class Server:
    """Runs a `Coordinator` for slots that connect to `address` and greet with the run's token; the journal gets

    guest-refused                one of the run, but not yet a slot, that said what no slot would say
    worker-joined, worker-lost   a slot, by the name that it gets here, the Spark task and its attempt; why it was lost,
                                 and the partitions that it had
    recovering                   a recovery begins: its epoch, the line (a checkpoint's number for each partition),
                                 where that has the sources, the partitions that are restored, and how far they were
    partition-loaded, -reached   a restored partition has its state again; it is as far as it was
    partitions-absent            others go on without the input of these; a partition does so from this batch
    and partition-tentative      until it is restored
    plan-changed                 others shall have a copy than before, because rates have changed
    queries-waiting, fell-back   queries that wait for room; a planner that left a plan to another
    ready                        all partitions that take part in a recovery are ready, and go on
    round-started, round-stored  of coordinated checkpoints
    slot-failed                  why a slot ends, if by its own fault
    checkpoint                   one that is stored: partition, number, how long it took [s], its bytes
    committed                    all output up to a line is published for good: where that has the sources
    progress                     twice a second: what partitions have counted, where sources are, how far partitions
                                 ever were if they recover on their own; of slots together the bytes sent, CPU time,
                                 idle time, and time for checkpoints
    costs                        once a second: what partitions and their copies have taken, by the worker they are at
    checkpoint-refused           one that the store refused, and why
    store-slow                   a slot, or the driver, that has waited long for the store
    undeleted                    the error of a store that refused to delete, or list, objects that are not needed
    draining                     it was asked to end, so the sources do
    finished                     the output is complete: where that has the sources
    """

    def __init__(self, job: Job, token: bytes, host: str, journal: Journal, store_key: bytes | None = None) -> None:
        """`store_key`: with which the driver before, if there was one, has sealed what it wrote.

        Raises `EnvironmentFailure` if that can't be read.
        """
        self.selector = selectors.DefaultSelector()
        self._job, self._journal = job, journal
        self._layout = job.layout()
        self._validation = MessageValidation(self._layout)
        strategy = job.brought_back_by()
        self._records = RecordKeeper(job.object_store(store_key))
        found = self._records.found
        given = job.slots, job.spare_lines, strategy, job.tentative, job.standby_hosts, found
        self._coordinator = Coordinator(self._layout, job.protocol_class, *given)
        self._garbage = GarbageCollector(job.object_store(), journal)
        self._admission = Admission(self.selector, host, SLOT, token, self._on_guest)
        self.address: Address = self._admission.address
        self._guests: dict[str, Guest] = {}
        self._named = self._failures = 0
        self._broken: dict[tuple[Guest, int], _Break] = {}  # by who told of it, and the other slot
        self._told_hosts: dict[int, str] = {}  # who is in which seat, as all slots were told last
        self._stillness = Stillness()
        self._run_events = RunEvents(self._layout, self._coordinator, journal, self._tasks)
        self._milestones = Milestones(self._layout, journal)
        self._first_epoch = 1 if strategy.partial else self._coordinator.epoch + 1  # no progress before it is known
        if found is not None and strategy.partial:
            self._milestones.take_over()
        self._cost_reports = CostReports(self._layout, self._guests, journal)
        self._store_watch = StoreWatch(self._guests, journal, self._records, self._garbage)
        costs = {} if found is None else found.costs
        self._costs = FollowingCosts(self._layout, self._coordinator, strategy, self._guests, costs)
        self._waiting_queries = WaitingQueries(self._layout, self._coordinator, strategy, journal)
        self._missing_input = MissingInput(self._layout, self._coordinator, journal)
        self._following_load = following_load(job, self._layout, self._coordinator, self.selector, journal)
        self._draining = SourceEnds(self._layout, self._coordinator, self._guests, {} if found is None else found.ends)
        beside = lambda: dict(self._draining.ends), lambda: dict(self._costs.cores)
        self._records.keep(self._coordinator, self._layout, job.protocol_class.name, *beside)
        self._next_round_s = self._next_progress_s = self._next_trim_s = 0.0
        self._sinks = {each.number for each in self._layout.partitions if isinstance(each.element, Sink)}

    def serve(self, stopping: Callable[[], bool]) -> bool:
        """Until the output is complete, which returns True, or it is stopping.

        Raises `EnvironmentFailure` when no line of checkpoints is left, or slots do nothing but fail; `TakenOver` when
        another driver has come.
        """
        while not stopping():
            looked_s = time.monotonic()
            turn(self.selector, TURN_S)
            self._on_clock(looked_s)
            self._carry_out()
            if self._layout.cyclic and self._coordinator.phase is Phase.RUNNING:
                self._look_for_stillness()
            for guest in list(self._guests.values()):
                guest.link.flush()
            if self._finished():
                self._records.confirm(self._store_watch.look)
                self._tell_progress()
                self._journal.record(Finished(self._positions()))
                return True
        return False

    def drain(self) -> None:
        """Let the sources end where they are, so that the output becomes complete, with a checkpoint at once."""
        self._journal.record(Draining())
        self._draining.ask()
        self._next_round_s = 0.0

    def close(self) -> None:
        """Tell all slots that the run is over."""
        for guest in list(self._guests.values()):  # one that is gone by now is lost here
            guest.say(Stop())
            guest.link.flush()
            guest.link.close()
        self._admission.close()
        self._garbage.close(self._store_watch.look)
        self._records.close()
        if self._following_load is not None:
            self._following_load.close()

    # What guests do.

    def _on_guest(self, connection: socket.socket, numbers: Fields) -> None:
        self._named += 1
        guest = Guest(self.selector, connection, self._named, self, self._records.driver)
        self._guests[guest.name] = guest

    def hear(self, guest: Guest, partition: int, content: bytes) -> None:
        """A block from a guest; raises `UnknownMessage` for what no slot says, or none that has not said hello."""
        if partition != NO_PARTITION:
            if guest.hello is None:
                raise UnknownMessage("a partition's message from somebody who has not said hello")
            message = self._validation.report(decode_message(content))
            if isinstance(message, Stored):
                is_current = message.epoch == self._coordinator.lives[message.checkpoint.partition]
                is_progress = self._job.strategy.partial or self._coordinator.phase is Phase.RUNNING
                if is_progress and is_current:
                    self._failures = 0  # what others stored while one failed is no progress if all wait for it
                self._run_events.stored(message)
            self._missing_input.hear(message)
            self._coordinator.on_message(message)
            self._run_events.look()
        else:
            self._on_slot_message(guest, decode(content))

    def refuse(self, guest: Guest, why: str) -> None:
        """A guest is not what it should be: it goes, and the journal has why."""
        if guest.hello is None:
            self._journal.record(GuestRefused(guest.name, why))
        self.lose(guest, why)

    def lose(self, guest: Guest, why: str) -> None:
        """A guest is gone, or given up."""
        if self._guests.pop(guest.name, None) is None:
            return
        guest.link.close()
        self._broken = {ends: each for ends, each in self._broken.items() if guest not in ends}
        if guest.hello is not None:
            had = self._coordinator.placement.partitions_of(guest.name) - self._coordinator.lost
            names = tuple(self._name(number) for number in sorted(had))
            self._journal.record(WorkerLost(guest.name, guest.hello.task, why, names))
            self._costs.forget(guest.name)
            self._coordinator.on_lost(guest.name)

    def _on_slot_message(self, guest: Guest, message: SlotMessage) -> None:
        if isinstance(message, Hello):
            self._welcome(guest, message)
        elif isinstance(message, SlotError):
            self._on_failed(guest, message)
        elif guest.hello is None:
            raise UnknownMessage("a slot's message from somebody who has not said hello")
        elif isinstance(message, SlotStatus):
            self._validation.status(message)
            guest.status = message
            self._milestones.note(message)
            self._costs.note(guest.name, message, guest.heard_s)
        elif isinstance(message, Broken) and message.epoch == self._coordinator.epoch:
            self._note_broken(guest, message)

    def _note_broken(self, guest: Guest, message: Broken) -> None:
        """What was heard in an earlier epoch is over. By now, somebody else may be in the seat that slots know."""
        ends, other = (guest, message.slot), self._told_hosts.get(message.slot, "")
        known = self._broken.get(ends)
        if other in self._guests and (known is None or known.epoch != message.epoch):
            self._broken[ends] = _Break(time.monotonic() + BROKEN_GRACE_S, message.epoch, other)

    def _on_failed(self, guest: Guest, failed: SlotError) -> None:
        """A slot ends by its own fault. That may help once; without progress in between it will not."""
        self._journal.record(SlotFailed(guest.name, failed.error))
        self._failures += 1
        if self._failures >= max(MOST_FAILURES, FAILURES_EACH * self._job.slots):
            raise EnvironmentFailure(f"slots fail again and again: {failed.error}", "look at the executors' logs")

    def _welcome(self, guest: Guest, hello: Hello) -> None:
        self._validation.hello(hello)
        if guest.hello is not None:
            raise UnknownMessage("a second hello")
        guest.hello = hello
        self._journal.record(WorkerJoined(guest.name, hello.task, hello.attempt, hello.address[0]))
        host = hello.address[0]
        self._coordinator.on_joined(guest.name, host, self._job.domains.get(host, ()))

    # What time brings.

    def _on_clock(self, now_s: float) -> None:
        """As of `now_s` [s, monotonic]: everything that had come by then was heard, however long that took."""
        self._admission.on_clock(now_s)
        self._cost_reports.on_clock(now_s)
        self._costs.on_clock(now_s)
        if self._following_load is not None:
            self._following_load.on_clock(now_s, [guest.status for guest in self._hosting_guests()])
        for guest in list(self._guests.values()):
            if now_s - guest.heard_s > self._job.silence_limit_s:
                self.lose(guest, f"silent for {self._job.silence_limit_s:g} s")
        for (guest, slot), noted in list(self._broken.items()):
            if now_s >= noted.due_s:
                self._broken.pop((guest, slot), None)
                if noted.epoch == self._coordinator.epoch and noted.worker in self._guests:
                    self.lose(guest, "its connection to another slot broke")
        if now_s >= self._next_round_s:
            interval_s = self._job.checkpoint_interval_s
            self._next_round_s = now_s + (min(interval_s, DRAINING_ROUND_S) if self._draining.asked else interval_s)
            self._coordinator.on_round_due()
        if now_s >= self._next_trim_s:
            self._next_trim_s = now_s + self._job.trim_every_s
            self._coordinator.on_trim_due()
        if now_s >= self._next_progress_s:
            self._next_progress_s = now_s + PROGRESS_S
            self._store_watch.look()
            self._tell_progress()

    def _finished(self) -> bool:
        statuses = [guest.status for guest in self._hosting_guests()]
        if not all(each.epoch == self._coordinator.epoch and each.ended for each in statuses):
            return False
        finished = {number for each in statuses for number in each.finished}
        still = not self._layout.cyclic or self._stillness.found
        return self._coordinator.phase is Phase.RUNNING and finished == self._sinks and still

    def _hosting_guests(self) -> list[Guest]:
        return [self._guests[name] for name in self._coordinator.placement.hosting]

    def _look_for_stillness(self) -> None:
        slots = set(self._coordinator.placement.hosting)
        counts = {name: guest.status.counts for name, guest in self._guests.items()}
        if self._stillness.hear(self._coordinator.epoch, slots, counts):
            for name in slots:
                self._guests[name].say(Count(self._stillness.asking))

    # What the coordinator asks for.

    def _carry_out(self) -> None:
        self._missing_input.look()
        self._waiting_queries.look()
        effects = self._records.effects()
        self._draining.look(self._records.ends)  # ends that are written are told before a recovery lets sources go on
        for effect in effects:
            match effect:
                case Order(worker, partition, message):
                    self._run_events.order(message)
                    if worker in self._guests:
                        self._guests[worker].link.send(block(partition, encode_message(message)))
                case Delete(keys):
                    self._garbage.delete(keys)
                case Sweep():
                    self._begin_recovery(effect)
                case SweepCopy():
                    self._garbage.sweep(effect)
                case Placed(epoch):
                    self._run_events.placed(epoch)
                    self._begin_epoch(epoch, (), {})

    def _begin_recovery(self, sweep: Sweep) -> None:
        line = self._coordinator.history.line
        numbers = {self._name(at.partition): at.number for at in line}
        affected = {each.number: each.name for each in self._layout.partitions if each.name in sweep.partitions}
        back = tuple(number for number, name in affected.items() if name not in sweep.promoted)
        void = frozenset(number for number in affected if not self._comes_back(number, sweep.epoch))
        reached = self._milestones.reached(affected) if sweep.epoch > self._first_epoch else {}
        positions = self._run_events.sources_at(line)
        restored, promoted = (
            tuple(sorted(name for number, name in affected.items() if number not in void and name in of))
            for of in (sweep.partitions - sweep.promoted.keys(), sweep.promoted.keys())
        )
        named = self._milestones.named(reached)
        self._journal.record(Recovering(sweep.epoch, numbers, positions, restored, promoted, named))
        self._garbage.sweep(sweep)
        self._begin_epoch(sweep.epoch, back, reached, tuple(sorted(void)))

    def _comes_back(self, number: int, epoch: int) -> bool:
        """Whether a partition still comes back in this epoch: it may have been lost again since this was planned."""
        return self._coordinator.lives[number] == epoch and number not in self._coordinator.down

    def _begin_epoch(
        self, epoch: int, back: tuple[int, ...], reached: dict[int, dict[int, int]], void: tuple[int, ...] = ()
    ) -> None:
        """Tell the workers where everybody is, before the orders of this epoch; the others are as of `Peers`."""
        placement, copies = self._coordinator.placement, self._coordinator.copies
        self._told_hosts = dict(placement.hosts)
        seats_of = {name: seat for seat, name in placement.hosts.items()}
        copied = {number: seats_of[each.worker] for number, each in copies.of.items()}
        seats = max(self._job.slots - 1, *placement.hosts, 0) + 1  # there may be no host left by now
        workers = [self._guests[placement.hosts[seat]] if seat in placement.hosts else None for seat in range(seats)]
        addresses = tuple(None if each is None or each.hello is None else each.hello.address for each in workers)
        serials = tuple(0 if each is None else each.serial for each in workers)
        for seat, worker in enumerate(workers):
            if worker is not None:
                worker.say(Peers(epoch, addresses, serials, seat, back, placement.moved, copied, reached, void))
        self._draining.on_epoch()

    # What slots have told.

    def _tasks(self) -> list[int]:
        return [guest.hello.task for guest in self._guests.values() if guest.hello is not None]

    def _positions(self) -> dict[str, int]:
        """Where the sources are."""
        statuses = [guest.status for guest in self._hosting_guests()]
        return {self._name(number): at for each in statuses for number, at in each.positions.items()}

    def _tell_progress(self) -> None:
        statuses = [guest.status for guest in self._hosting_guests()]
        everyone = range(len(self._layout.partitions))
        report = Report(
            epoch=self._coordinator.epoch,
            phase=RunPhase(self._coordinator.phase.value),
            tallies={self._name(number): tally for each in statuses for number, tally in each.tallies.items()},
            positions=self._positions(),
            slots=len(statuses),
            sent_bytes=sum(each.sent_bytes for each in statuses),
            cpu_s=sum(each.cpu_s for each in statuses),
            idle_s=sum(each.idle_s for each in statuses),
            checkpoint_s=sum(each.checkpoint_s for each in statuses),
            logs={self._name(number): counts for each in statuses for number, counts in each.logs.items()},
            reached=self._milestones.named(self._milestones.reached(everyone)) if self._job.strategy.partial else {},
        )
        self._journal.record(report)

    def _name(self, partition: int) -> str:
        return self._layout.partitions[partition].name
