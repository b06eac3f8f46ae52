"""The coordinator as a state machine: who hosts what, epochs, rounds, recovery, and what may be deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from functools import partial

from experiments.errors import BadInput
from testbed.core.control import (
    Absent,
    Failure,
    Passed,
    Promote,
    Published,
    Ready,
    Round,
    Stable,
    Stored,
    ToCoordinator,
    TurnedTentative,
    Unreadable,
    Waiting,
)
from testbed.core.coordinator.absent_partitions import AbsentPartitions
from testbed.core.coordinator.copies import Copies
from testbed.core.coordinator.copying import Copying
from testbed.core.coordinator.garbage import Garbage
from testbed.core.coordinator.history import History
from testbed.core.coordinator.line_orders import LineOrders
from testbed.core.coordinator.line_record import LineRecord
from testbed.core.coordinator.outbox import Outbox
from testbed.core.coordinator.placement import Placement, Worker
from testbed.core.coordinator.recoveries_underway import RecoveriesUnderway
from testbed.core.coordinator.rounds import CheckpointRounds
from testbed.core.coordinator.waiting_partitions import WaitingPartitions
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import CoordinatorEffect
from testbed.core.protocol import Protocol
from testbed.core.recovery import Global, RecoveryStrategy, World
from testbed.operators import Delivery, Sink, Source


class Phase(Enum):
    """Waiting for a worker of some partition, restoring until all that take part are ready, or running."""

    WAITING = "waiting"
    RESTORING = "restoring"
    RUNNING = "running"


class Coordinator:
    """Keeps a dataflow going on workers that come and go.

    Each recovery has an epoch, one more than the last. The life of a partition is the epoch of the recovery that
    restored it last; what an earlier life of it says is void. If a lost partition has a copy, the copy is promoted: it
    begins a life as if it had been restored, with all that it has.

    lost   the partitions that no worker has: a worker in their place has yet to be told to restore them

    Raises `BadInput` for a protocol that can't protect the dataflow, and for a strategy that does not go with the
    protocol.
    """

    def __init__(
        self,
        layout: Layout,
        protocol: type[Protocol],
        slots: int,
        spare_lines: int = 1,
        recovery: RecoveryStrategy | None = None,
        tentative: bool = False,
        standby_hosts: Iterable[str] = (),
        record: LineRecord | None = None,
    ) -> None:
        """`tentative`: whether partitions go on without the input of those that are down; `standby_hosts`: as of
        `Placement`; `record`: what the coordinator before knew. All of its workers are lost."""
        protocol.check(layout)
        for name, value, least in (("slots", slots, 1), ("spare_lines", spare_lines, 0)):
            if value < least:
                raise BadInput(name, value, f"{least} or more")
        self._strategy = recovery or Global()
        if (why := self._strategy.check(protocol)) is not None:
            raise BadInput("recovery", self._strategy.name, why)
        if tentative and (why := self._strategy.why_not_tentative()) is not None:
            raise BadInput("tentative", tentative, why)
        self.epoch, self.lives = 0, [0] * len(layout.partitions)
        self.history = History(layout, protocol.find_line, spare_lines, protocol.by_batch, protocol.begins_anew)
        self.placement = Placement(layout.partitions, slots, frozenset(standby_hosts), self._strategy.standby_room)
        self._layout, self._protocol = layout, protocol
        self._outbox = Outbox(self.placement)
        self._garbage = Garbage(self._outbox.effects)
        self._line_orders = LineOrders(layout, self.history, self._garbage)
        self._down = set(range(len(layout.partitions)))
        self.lost = set(self._down)
        self.recoveries, self._rounds = RecoveriesUnderway(layout), CheckpointRounds()
        if record is not None:
            record.check(layout, protocol.name)
            self.epoch = record.epoch
            self.history.go_on_from(record.history)
            self._rounds.number = self.history.last
        self._absent_partitions = AbsentPartitions(layout) if tentative else None
        waits = self._strategy.keeps_output() and not tentative
        self.waiting_partitions = WaitingPartitions(layout) if waits else None
        self.copies = Copies(layout, self._strategy.copied(layout), slots)
        shared = self.history, self.placement, self._down, self._outbox.effects, self._garbage
        self._copying = Copying(layout, self.copies, *shared, self._begin_epoch, self._line_orders.restore)
        self._sinks = [p.number for p in layout.partitions if p.element == Sink(Delivery.EXACTLY_ONCE)]
        self._sources = [p.number for p in layout.partitions if isinstance(p.element, Source)]

    @property
    def phase(self) -> Phase:
        """How far it is. With a partial recovery partitions that were not lost run in any phase."""
        if self._down:
            return Phase.WAITING
        return Phase.RESTORING if self.recoveries.of else Phase.RUNNING

    @property
    def down(self) -> frozenset[int]:
        """The partitions that have yet to be restored."""
        return frozenset(self._down)

    @property
    def absent(self) -> frozenset[int]:
        """The partitions without whose output the others go on; none before the first start."""
        if self._absent_partitions is None or not self.epoch:
            return frozenset()
        return self._absent_partitions.absent(self._down)

    def take_effects(self) -> list[CoordinatorEffect]:
        """The effects since the last call, to be carried out in this order."""
        return self._outbox.take()

    def on_joined(self, worker: str, host: str = "", domains: Iterable[str] = ()) -> None:
        """A worker comes; its host and failure domains are empty if they are not known."""
        self.placement.join(Worker(worker, host, frozenset(domains)))
        self.restore_what_can_be()
        self._make_copies()

    def on_lost(self, worker: str) -> None:
        """A worker is gone or cannot be reached. Both are treated alike: its messages are ignored from now on."""
        lost = set(self.placement.lose(worker))
        self._copying.drop(self.copies.at(worker))
        promoted = self._copying.promotable(lost - self._down)
        for number in promoted:
            self.placement.move(number, self.copies.of[number].worker)
        lost -= promoted
        self._copying.drop(lost)
        self.placement.fill()
        if not lost and not promoted:
            self._make_copies()
            return
        new = tuple(sorted(lost - self._down))
        self._down |= lost
        self.lost |= lost
        if new:
            self._outbox.order(self._up() - promoted, lambda number: Failure(self.lives[number], new))
        self._tell_neighbours(lost, promoted)
        if not self._strategy.partial:
            self.recoveries.clear()
        self.recoveries.leave(lost | promoted)
        if promoted:
            self._recover(frozenset(), promoted)
        self.restore_what_can_be()
        self._make_copies()

    def adapt(self, wanted: frozenset[int]) -> None:
        """From now on these partitions shall have a copy, and no others.

        What is not wanted any more is closed down; what is new is made from the line once everybody is up. No primary
        begins a new life for it.
        """
        self.copies.wanted = wanted
        self._copying.drop(self.copies.of.keys() - wanted)
        self._make_copies()

    def on_trim_due(self) -> None:
        """The period is over after which copies let go what their primaries have emitted."""
        self._copying.trim()

    def on_round_due(self) -> None:
        """The interval of coordinated checkpoints is over. A round waits for the reports on the one before."""
        if self.phase is Phase.RUNNING and self._protocol.in_rounds and not self._rounds.under_way:
            self._rounds.begin(range(len(self._layout.partitions)))
            self._outbox.order(self._sources, lambda number: Round(self.lives[number], self._rounds.number))

    def on_message(self, message: ToCoordinator) -> None:
        """A partition tells something; of an earlier life only what is final still counts."""
        if isinstance(message, Published):
            self._garbage.delete(self.history.publish(message.partition, message.number))
        elif isinstance(message, Ready):
            self._on_ready(message)
        elif isinstance(message, Passed):
            self.copies.on_passed(message.partition, message.epoch, message.number)
        elif isinstance(message, Stored):
            if message.epoch == self.lives[message.checkpoint.partition]:
                self._on_stored(message)
        elif message.epoch != self.lives[message.partition]:
            self._copying.drop_unreadable(message.partition, message.epoch)
        elif isinstance(message, Unreadable):
            self._on_unreadable(message)
        elif isinstance(message, TurnedTentative):
            self._on_turned_tentative(message)
        else:
            self._rounds.report(message.partition, message.number)

    def _on_ready(self, message: Ready) -> None:
        self._garbage.end_reading(message.partition, message.epoch)
        if message.epoch in self.copies.attachments:
            self._copying.on_ready(message)
        else:
            self.recoveries.on_ready(message)
            self._go_where_ready()

    def _on_unreadable(self, message: Unreadable) -> None:
        """The line lies further back now, maybe behind what survivors have let go: everybody goes there."""
        self.history.drop_unreadable(message.partition, message.key)
        self._down |= set(range(len(self._layout.partitions)))
        self._copying.drop(self._down)
        self.recoveries.clear()
        self._tell_neighbours(self._down)
        self.restore_what_can_be()

    def _on_turned_tentative(self, message: TurnedTentative) -> None:
        """If what was missing has come back in the meantime, the partition goes back at once."""
        if self._absent_partitions is not None:
            self._absent_partitions.turned(message.partition)
            self.restore_what_can_be()

    def _tell_neighbours(self, forgotten: Iterable[int], promoted: Collection[int] = ()) -> None:
        """Who is down or restored has been told nothing. Everybody else hears which of its inputs are absent now, or
        for which receivers it must not wait, but for those whose copies are about to be promoted: they hear it then."""
        lost = self._down | self.recoveries.restoring(self.lives)
        for kind, of, gone in (
            (Absent, self._absent_partitions, self._down),
            (Waiting, self.waiting_partitions, lost),
        ):
            if of is not None:
                of.forget(forgotten)
                changes = of.changes(self._up().difference(promoted), gone)
                told = {number: kind(self.lives[number], others) for number, others in changes.items()}
                self._outbox.order(sorted(told), told.__getitem__)

    def _on_stored(self, message: Stored) -> None:
        before = self.history.stable
        self._garbage.delete(self.history.add(message.checkpoint))
        self._rounds.report(message.checkpoint.partition, message.checkpoint.number)
        if self.history.stable != before:
            self._announce_stable()
            self._make_copies()

    def restore_what_can_be(self) -> None:
        """Ask the strategy what to bring back, and do so. What it goes by may have changed since it was asked last."""
        plan = self._strategy.plan(self._world())
        for number, worker in plan.items():
            if worker is not None:
                self.placement.move(number, worker)
        restored = frozenset(plan)
        if self._absent_partitions is not None:
            restored |= self._absent_partitions.corrected_with(self._down - restored)
        if restored:
            self._recover(restored)
        self._go_where_ready()

    def _world(self) -> World:
        alive = (number for number in range(len(self._layout.partitions)) if number not in self.lost)
        hosts = {number: worker for number in alive if (worker := self.placement.worker_of(number)) is not None}
        return World(
            partitions=len(self._layout.partitions),
            down=frozenset(self._down),
            placed=self.placement.placed,
            started=self.epoch > 0,
            workers=self.placement.in_order(self.epoch > 0),
            hosts=hosts,
            layout=self._layout,
            slots=self.placement.slots,
        )

    def _recover(self, restored: frozenset[int], promoted: frozenset[int] = frozenset()) -> None:
        """Bring these partitions back to the line, or let their copies take their place. Their neighbours rejoin them;
        other partitions are not affected."""
        back = restored | promoted
        self.recoveries.leave(back)
        self._copying.drop(restored)
        self._begin_epoch()
        self._down -= restored
        self.lost -= restored
        self._rounds.abandon()
        copies = {number: self.copies.of[number] for number in promoted}
        self._garbage.delete(self.history.recover(back, {number: copy.number for number, copy in copies.items()}))
        lives = {number: copy.life for number, copy in copies.items()}
        self._outbox.effects.append(self._line_orders.sweep(back, lives, self.epoch))
        rejoins = self._line_orders.rejoins(back, self._up(), self.epoch)
        if len(restored) == len(self._layout.partitions):
            self.recoveries.clear()
        self.recoveries.begin(self.epoch, {*back, *rejoins})
        restore = partial(self._line_orders.restore, epoch=self.epoch)
        for number in sorted(back):
            self._garbage.end_reading(number, self.lives[number])
            self.lives[number] = self.epoch
            self._outbox.order([number], self._promote if number in promoted else restore)
            if self._down:
                self._outbox.order([number], lambda _: Failure(self.epoch, tuple(sorted(self._down))))
        self._outbox.order(sorted(rejoins), lambda number: rejoins[number])
        self._tell_neighbours(back)
        self._copying.attach({}, back)

    def _go_where_ready(self) -> None:
        """Let the partitions of each recovery go on once all of them are ready.

        A partition that was just told to roll back again no longer belongs to its earlier recovery.
        """
        layouts = self._layout.partitions
        for epoch, recovery in self.recoveries.over():
            told = {number: recovery.go(layouts[number], epoch) for number in sorted(recovery.taking_part)}
            self._outbox.order(told, told.__getitem__)
            self._tell_neighbours(())
            self._announce_stable()
            self._make_copies()

    def _begin_epoch(self) -> int:
        self.epoch += 1
        return self.epoch

    def _promote(self, number: int) -> Promote:
        self.copies.drop(number)
        return Promote(self.epoch)

    def _make_copies(self) -> None:
        if self.phase is Phase.RUNNING:
            self._copying.make()

    def _announce_stable(self) -> None:
        """Sinks publish what a stable line covers; partitions that retain output for others drop output before it."""
        told = self._up() if self._protocol.by_batch else self._sinks
        self._outbox.order(told, lambda number: Stable(self.lives[number], self.history.stable[number].number))
        self._copying.announce_stable()

    def _up(self) -> set[int]:
        return {each.number for each in self._layout.partitions} - self._down
