"""The coordinator as a state machine: who hosts what, epochs, rounds, recovery, and what may be deleted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from experiments.errors import BadInput
from testbed.core.control import (
    Failure,
    Go,
    NotStored,
    Published,
    Ready,
    Restore,
    Round,
    Stable,
    Stored,
    ToCoordinator,
    ToPartition,
    Unreadable,
)
from testbed.core.effects import CoordinatorEffect, Delete, Order, Sweep
from testbed.core.history import History
from testbed.core.layout import Layout
from testbed.core.protocol import Protocol
from testbed.operators import Delivery, Sink, Source


class Phase(Enum):
    """Waiting for workers, restoring until every partition is ready, or running."""

    WAITING = "waiting"
    RESTORING = "restoring"
    RUNNING = "running"


@dataclass
class Placement:
    """Which worker has which slot. Partition i of every operator belongs to slot i modulo their number.

    A slot keeps its partitions and goes as a whole to another worker, of those that are there the one that came first.
    """

    slots: int
    hosts: dict[int, str] = field(default_factory=dict)
    spare: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return len(self.hosts) == self.slots

    def join(self, worker: str) -> None:
        self.spare.append(worker)
        self._fill()

    def lose(self, worker: str) -> set[int]:
        """The worker is gone; returns the slots that it had."""
        lost = {slot for slot, host in self.hosts.items() if host == worker}
        self.spare = [each for each in self.spare if each != worker]
        for slot in lost:
            del self.hosts[slot]
        self._fill()
        return lost

    def _fill(self) -> None:
        for slot in range(self.slots):
            if slot not in self.hosts and self.spare:
                self.hosts[slot] = self.spare.pop(0)


class Coordinator:
    """Keeps a dataflow going on workers that come and go. Raises `BadInput` for a protocol that can't protect it."""

    def __init__(self, layout: Layout, protocol: type[Protocol], slots: int, spare_lines: int = 1) -> None:
        protocol.check(layout)
        for name, value, least in (("slots", slots, 1), ("spare_lines", spare_lines, 0)):
            if value < least:
                raise BadInput(name, value, f"{least} or more")
        self.epoch, self.phase = 0, Phase.WAITING
        self.history = History(layout, protocol.find_line, spare_lines)
        self.placement = Placement(slots)
        self._layout, self._protocol = layout, protocol
        self._effects: list[CoordinatorEffect] = []
        self._awaited: set[int] = set()
        self._round, self._unreported = 0, set[int]()
        self._sinks = [p.number for p in layout.partitions if p.element == Sink(Delivery.EXACTLY_ONCE)]
        self._sources = [p.number for p in layout.partitions if isinstance(p.element, Source)]

    def take_effects(self) -> list[CoordinatorEffect]:
        """The effects since the last call, to be carried out in this order."""
        effects, self._effects = self._effects, []
        return effects

    def on_joined(self, worker: str) -> None:
        """A worker offers its slot."""
        was_complete = self.placement.complete
        self.placement.join(worker)
        if self.placement.complete and not was_complete:
            self._recover()

    def on_lost(self, worker: str) -> None:
        """A worker is gone, or out of reach, which comes to the same: nobody will listen to it any more."""
        lost = self.placement.lose(worker)
        if not lost:
            return
        partitions = tuple(p.number for p in self._layout.partitions if p.index % self.placement.slots in lost)
        if self.phase is not Phase.WAITING:
            failure = Failure(self.epoch, partitions)
            self._order((p.number for p in self._layout.partitions if p.number not in partitions), failure)
        self.phase = Phase.WAITING
        if self.placement.complete:
            self._recover()

    def on_round_due(self) -> None:
        """The interval of coordinated checkpoints is over. A round waits for the reports on the one before."""
        if self.phase is Phase.RUNNING and self._protocol.in_rounds and not self._unreported:
            self._round += 1
            self._unreported = {each.number for each in self._layout.partitions}
            self._order(self._sources, Round(self.epoch, self._round))

    def on_message(self, message: ToCoordinator) -> None:
        """A partition tells something; of an earlier epoch only what is out for good still counts."""
        if isinstance(message, Published):
            self._delete(self.history.publish(message.partition, message.number))
        elif message.epoch != self.epoch:
            return
        elif isinstance(message, Ready):
            self._on_ready(message)
        elif isinstance(message, Unreadable):
            self.history.drop_unreadable(message.partition, message.key)
            self._recover()
        elif isinstance(message, Stored):
            self._on_stored(message)
        elif isinstance(message, NotStored):
            self._report(message.partition, message.number)

    def _on_ready(self, message: Ready) -> None:
        self._awaited.discard(message.partition)
        if self.phase is Phase.RESTORING and not self._awaited:
            self.phase = Phase.RUNNING
            self._order((each.number for each in self._layout.partitions), Go(self.epoch))
            self._announce_stable()

    def _on_stored(self, message: Stored) -> None:
        before = self.history.stable
        self._delete(self.history.add(message.checkpoint))
        self._report(message.checkpoint.partition, message.checkpoint.number)
        if self.history.stable != before:
            self._announce_stable()

    def _report(self, partition: int, number: int) -> None:
        """A partition's checkpoint of this round is stored, or won't be."""
        if number == self._round:
            self._unreported.discard(partition)

    def _recover(self) -> None:
        self.epoch += 1
        self.phase, self._unreported = Phase.RESTORING, set()
        self._delete(self.history.recover())
        self._effects.append(Sweep(self.epoch, frozenset(self.history.keys())))
        self._awaited = {each.number for each in self._layout.partitions}
        for at in self.history.line:
            number = at.partition
            logs, published = self.history.replayed_logs(number), self.history.published(number)
            arrived = {
                c.id: self.history.line[c.receiver].received[c.id] for c in self._layout.partitions[number].outputs
            }
            self._order([number], Restore(self.epoch, at, logs, published, arrived))

    def _announce_stable(self) -> None:
        for number in self._sinks:
            self._order([number], Stable(self.epoch, self.history.stable[number].number))

    def _order(self, partitions: Iterable[int], message: ToPartition) -> None:
        for number in partitions:
            slot = self._layout.partitions[number].index % self.placement.slots
            if slot in self.placement.hosts:
                self._effects.append(Order(self.placement.hosts[slot], number, message))

    def _delete(self, keys: list[str]) -> None:
        if keys:
            self._effects.append(Delete(tuple(keys)))
