"""The coordinator as a state machine: who hosts what, epochs, rounds, recovery, and what may be deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from experiments.errors import BadInput
from testbed.core.checkpoints import NO_BATCH
from testbed.core.control import (
    Attach,
    Attached,
    Detach,
    Dismiss,
    Failure,
    Go,
    Passed,
    Promote,
    Published,
    Ready,
    Rejoin,
    Restore,
    Round,
    Stable,
    Stored,
    ToCoordinator,
    ToPartition,
    Unreadable,
)
from testbed.core.copies import Attachment, Copies, Copy
from testbed.core.effects import CoordinatorEffect, Delete, Order, Placed, Sweep
from testbed.core.history import History
from testbed.core.layout import Layout
from testbed.core.placement import Placement, Worker
from testbed.core.protocol import Protocol
from testbed.core.recovery import Global, Recovery, World
from testbed.operators import Delivery, Sink, Source


class Phase(Enum):
    """Waiting for a worker of some partition, restoring until all that take part are ready, or running."""

    WAITING = "waiting"
    RESTORING = "restoring"
    RUNNING = "running"


@dataclass
class _Underway:
    """A recovery that has begun.

    taking_part   who is restored or promoted, and who rejoins them
    awaited       those that have yet to say that they are ready
    reached       by restored partition the last batch that a neighbour has whole from an earlier life of it
    arrived       by channel that begins anew, the last batch that its receiver has whole
    """

    taking_part: set[int]
    awaited: set[int]
    reached: dict[int, int] = field(default_factory=dict)
    arrived: dict[int, int] = field(default_factory=dict)

    def lose(self, partitions: set[int]) -> None:
        """These take no part any more: they will be restored by a later recovery."""
        self.taking_part -= partitions
        self.awaited -= partitions


class Coordinator:
    """Keeps a dataflow going on workers that come and go.

    Each recovery has an epoch, one more than the last. The life of a partition is the epoch of the recovery that
    restored it last; what an earlier life of it says is void. If a lost partition has a copy, the copy is promoted: it
    begins a life as if it had been restored, with all that it has.

    Raises `BadInput` for a protocol that can't protect the dataflow, and for a strategy that does not go with the
    protocol.
    """

    def __init__(
        self,
        layout: Layout,
        protocol: type[Protocol],
        slots: int,
        spare_lines: int = 1,
        recovery: Recovery | None = None,
    ) -> None:
        protocol.check(layout)
        for name, value, least in (("slots", slots, 1), ("spare_lines", spare_lines, 0)):
            if value < least:
                raise BadInput(name, value, f"{least} or more")
        self._strategy = recovery or Global()
        if (why := self._strategy.check(protocol)) is not None:
            raise BadInput("recovery", self._strategy.name, why)
        self.epoch, self.lives = 0, [0] * len(layout.partitions)
        self.history = History(layout, protocol.find_line, spare_lines)
        self.placement = Placement(layout.partitions, slots)
        self.copies = Copies(layout, self._strategy.copied(layout), slots)
        self._layout, self._protocol = layout, protocol
        self._effects: list[CoordinatorEffect] = []
        self._down = set(range(len(layout.partitions)))
        self._underway: dict[int, _Underway] = {}
        self._round, self._unreported = 0, set[int]()
        self._sinks = [p.number for p in layout.partitions if p.element == Sink(Delivery.EXACTLY_ONCE)]
        self._sources = [p.number for p in layout.partitions if isinstance(p.element, Source)]

    @property
    def phase(self) -> Phase:
        """How far it is. With a partial recovery partitions that were not lost run in any phase."""
        if self._down:
            return Phase.WAITING
        return Phase.RESTORING if self._underway else Phase.RUNNING

    @property
    def down(self) -> frozenset[int]:
        """The partitions that have yet to be restored."""
        return frozenset(self._down)

    def take_effects(self) -> list[CoordinatorEffect]:
        """The effects since the last call, to be carried out in this order."""
        effects, self._effects = self._effects, []
        return effects

    def on_joined(self, worker: str, host: str = "", domain: str = "") -> None:
        """A worker comes; its host and failure domain are empty if they are not known."""
        self.placement.join(Worker(worker, host, domain))
        self._restore_what_can_be()
        self._make_copies()

    def on_lost(self, worker: str) -> None:
        """A worker is gone, or out of reach, which comes to the same: nobody will listen to it any more."""
        lost = set(self.placement.lose(worker))
        self._drop_copies(self.copies.at(worker))
        line = self.history.line
        promoted = frozenset(n for n in lost - self._down if self.copies.can_replace(n, line[n].number))
        for number in promoted:
            self.placement.move(number, self.copies.of[number].worker)
        lost -= promoted
        self._drop_copies(lost)
        self.placement.fill()
        if not lost and not promoted:
            return
        new = tuple(sorted(lost - self._down))
        self._down |= lost
        if new:
            self._order(self._up() - promoted, lambda number: Failure(self.lives[number], new))
        if not self._strategy.partial:
            self._underway.clear()
        for epoch, recovery in list(self._underway.items()):
            recovery.lose(lost | promoted)
            self._go_if_ready(epoch)
        if promoted:
            self._recover(frozenset(), promoted)
        self._restore_what_can_be()
        self._make_copies()

    def on_round_due(self) -> None:
        """The interval of coordinated checkpoints is over. A round waits for the reports on the one before."""
        if self.phase is Phase.RUNNING and self._protocol.in_rounds and not self._unreported:
            self._round += 1
            self._unreported = {each.number for each in self._layout.partitions}
            self._order(self._sources, lambda number: Round(self.lives[number], self._round))

    def on_message(self, message: ToCoordinator) -> None:
        """A partition tells something; of an earlier life only what is out for good still counts."""
        if isinstance(message, Published):
            self._delete(self.history.publish(message.partition, message.number))
        elif isinstance(message, Ready):
            self._on_ready(message)
        elif isinstance(message, Passed):
            self.copies.on_passed(message.partition, message.epoch, message.number)
        elif isinstance(message, Stored):
            if message.epoch == self.lives[message.checkpoint.partition]:
                self._on_stored(message)
        elif message.epoch != self.lives[message.partition]:
            self._on_copy_unreadable(message.partition, message.epoch)
        elif isinstance(message, Unreadable):
            self._on_unreadable(message)
        else:
            self._report(message.partition, message.number)

    def _on_ready(self, message: Ready) -> None:
        if message.epoch in self.copies.attachments:
            self.copies.on_ready(message.partition, message.epoch, message.arrived)
            self._attach_if_ready()
        elif message.epoch in self._underway:
            recovery = self._underway[message.epoch]
            recovery.arrived |= message.arrived
            recovery.awaited.discard(message.partition)
            for channel, batch in message.arrived.items():
                sender = self._layout.channels[channel].sender
                recovery.reached[sender] = max(batch, recovery.reached.get(sender, NO_BATCH))
            self._go_if_ready(message.epoch)

    def _go_if_ready(self, epoch: int) -> None:
        if not self._underway[epoch].awaited:
            recovery = self._underway.pop(epoch)
            going = sorted(recovery.taking_part)
            self._order(going, lambda number: self._go(number, epoch, recovery))
            self._announce_stable()
            self._make_copies()

    def _go(self, number: int, epoch: int, recovery: _Underway) -> Go:
        outputs = (each.id for each in self._layout.partitions[number].outputs)
        arrived = tuple((channel, recovery.arrived[channel]) for channel in outputs if channel in recovery.arrived)
        return Go(epoch, recovery.reached.get(number, NO_BATCH), arrived)

    def _on_unreadable(self, message: Unreadable) -> None:
        """The line lies further back now, maybe behind what survivors have let go: everybody goes there."""
        self.history.drop_unreadable(message.partition, message.key)
        self._down = set(range(len(self._layout.partitions)))
        self._drop_copies(self._down)
        self._underway.clear()
        self._restore_what_can_be()

    def _on_stored(self, message: Stored) -> None:
        before = self.history.stable
        self._delete(self.history.add(message.checkpoint))
        self._report(message.checkpoint.partition, message.checkpoint.number)
        if self.history.stable != before:
            self._announce_stable()
            self._make_copies()

    def _report(self, partition: int, number: int) -> None:
        """A partition's checkpoint of this round is stored, or won't be."""
        if number == self._round:
            self._unreported.discard(partition)

    def _restore_what_can_be(self) -> None:
        world = World(len(self._layout.partitions), frozenset(self._down), self.placement.placed)
        if restored := self._strategy.restored_now(world):
            self._recover(restored)

    def _recover(self, restored: frozenset[int], promoted: frozenset[int] = frozenset()) -> None:
        """Bring these partitions back to the line, or let their copies take their place; their neighbours rejoin them,
        nobody else notices."""
        back = restored | promoted
        self._drop_copies(restored)
        self.epoch += 1
        self._down -= restored
        self._unreported = set()
        self._delete(self.history.recover(back))
        names, of_copies = self._names(back), self._names(promoted)
        self._effects.append(Sweep(self.epoch, frozenset(self.history.keys()), names, of_copies))
        rejoins = self._rejoins(back)
        if len(restored) == len(self._layout.partitions):
            self._underway.clear()
        self._underway[self.epoch] = _Underway({*back, *rejoins}, {*back, *rejoins})
        for number in sorted(back):
            self.lives[number] = self.epoch
            self._order([number], self._promote if number in promoted else self._restore)
            if self._down:
                self._order([number], lambda _: Failure(self.epoch, tuple(sorted(self._down))))
        self._order(sorted(rejoins), lambda number: rejoins[number])
        self._attach({}, back)

    def _promote(self, number: int) -> Promote:
        self.copies.drop(number)
        return Promote(self.epoch)

    def _names(self, partitions: frozenset[int]) -> frozenset[str]:
        return frozenset(self._layout.partitions[number].name for number in partitions)

    # Copies.

    def _make_copies(self) -> None:
        """Make what is wanted and is not there, once everybody is: a copy takes in what all of its senders send."""
        if self.phase is Phase.RUNNING and (places := self.copies.places(self.placement)):
            self._attach(places, frozenset())

    def _attach(self, made: dict[int, str], back: frozenset[int]) -> None:
        """Make copies, by partition at these workers, and let those that are there hear from who is back."""
        line = self.history.line
        heard = self.copies.hear_from(back)
        self._drop_copies({n for n in heard if not self.copies.can_replace(n, line[n].number)})
        heard = {number: channels for number, channels in heard.items() if number in self.copies.of}
        if not made and not heard:
            return
        self.epoch += 1
        for number, worker in made.items():
            self.placement.seat(worker)
            self.copies.of[number] = Copy(worker, self.epoch, line[number].number)
        self._effects.append(Placed(self.epoch))
        for number in made:
            self._order_copy(number, replace(self._restore(number), muted=True))
            heard[number] = tuple(each.id for each in self._layout.partitions[number].inputs)
        for number in heard.keys() - made.keys():
            self._order_copy(number, Rejoin(self.epoch, line[number].number, (), heard[number]))
        outputs = self.copies.senders_to(sorted(channel for channels in heard.values() for channel in channels))
        self.copies.attachments[self.epoch] = Attachment(set(heard), outputs)
        for sender, channels in outputs.items():
            self._tell(sender, Attach(self.epoch, line[sender].number, channels))

    def _attach_if_ready(self) -> None:
        for epoch, each in self.copies.released():
            for sender, channels in each.outputs.items():
                arrived = tuple((channel, each.arrived[channel]) for channel in channels if channel in each.arrived)
                self._tell(sender, Attached(epoch, arrived))

    def _drop_copies(self, partitions: Iterable[int]) -> None:
        """The copies of these partitions are lost, or of no more use."""
        for number in sorted(self.copies.of.keys() & set(partitions)):
            copy = self.copies.drop(number)
            if copy.worker in self.placement.workers:
                self._effects.append(Order(copy.worker, number, Dismiss(copy.life)))
            inputs = (each.id for each in self._layout.partitions[number].inputs)
            for sender, channels in self.copies.senders_to(inputs).items():
                self._tell(sender, Detach(self.epoch, channels))
        self._attach_if_ready()

    def _on_copy_unreadable(self, partition: int, epoch: int) -> None:
        """A copy can't be made: it is tried again at another line. What an earlier life says is void."""
        copy = self.copies.of.get(partition)
        if copy is not None and copy.life == epoch:
            self._drop_copies({partition})

    def _tell(self, sender: int, message: ToPartition) -> None:
        """Say something about copies to who sends to them, if it is not down: then it forgets them anyway."""
        self._order({sender} & self._up(), lambda _: message)

    def _order_copy(self, number: int, message: ToPartition) -> None:
        self._effects.append(Order(self.copies.of[number].worker, number, message))

    def _restore(self, number: int) -> Restore:
        at = self.history.line[number]
        logs, published = self.history.replayed_logs(number), self.history.published(number)
        outputs = self._layout.partitions[number].outputs
        arrived = {c.id: self.history.line[c.receiver].received[c.id] for c in outputs}
        return Restore(self.epoch, at, logs, published, arrived)

    def _rejoins(self, restored: frozenset[int]) -> dict[int, Rejoin]:
        """What the neighbours of restored partitions hear that are not restored themselves."""
        found: dict[int, Rejoin] = {}
        for number in self._up() - restored:
            of = self._layout.partitions[number]
            outputs = tuple(c.id for c in of.outputs if c.receiver in restored)
            inputs = tuple(c.id for c in of.inputs if c.sender in restored)
            if outputs or inputs:
                found[number] = Rejoin(self.epoch, self.history.line[number].number, outputs, inputs)
        return found

    def _announce_stable(self) -> None:
        """Sinks publish what a stable line covers; whoever keeps output for others lets go what lies before it."""
        told = self._up() if self._protocol.by_batch else self._sinks
        self._order(told, lambda number: Stable(self.lives[number], self.history.stable[number].number))
        for number, copy in self.copies.of.items():
            self._order_copy(number, Stable(copy.life, self.history.stable[number].number))

    def _up(self) -> set[int]:
        return {each.number for each in self._layout.partitions} - self._down

    def _order(self, partitions: Iterable[int], message: Callable[[int], ToPartition]) -> None:
        for number in partitions:
            worker = self.placement.worker_of(number)
            if worker is not None:
                self._effects.append(Order(worker, number, message(number)))

    def _delete(self, keys: list[str]) -> None:
        if keys:
            self._effects.append(Delete(tuple(keys)))
