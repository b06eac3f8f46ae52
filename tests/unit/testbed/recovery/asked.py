"""Every state of the coordinator that was met, and what it does there: the real one is asked once for each input."""

from __future__ import annotations

import copy
from types import FunctionType
from typing import NamedTuple

from testbed.core.checkpoints import Checkpoint
from testbed.core.control import Ready, Restore, Stored, Unreadable
from testbed.core.coordinator.coordinator import Coordinator, Phase
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import Delete, Order, Sweep
from testbed.core.recovery import RecoveryStrategy


class Back(NamedTuple):
    """`Restore`, by the object that has the checkpoint; the first checkpoint has none."""

    epoch: int
    number: int
    key: str | None


class Known(NamedTuple):
    """What can be told of a state of the coordinator."""

    lives: tuple[int, ...]
    hosts: tuple[str | None, ...]
    stable: int
    line: tuple[int, ...]
    keys: frozenset[str]
    phase: Phase


def key_of(layout, partition, number, epoch):
    """The object with a checkpoint."""
    return f"{layout.partitions[partition].name}/state-{number}-{epoch}" if number else None


class AskedCoordinator:
    """States of the coordinator have numbers. In state 0, no worker has joined."""

    def __init__(self, coordinator: Coordinator, layout: Layout) -> None:
        self.layout = layout
        self._numbers: dict = {}
        self._states: list[Coordinator] = []
        self._answers: dict = {}
        self.known: list[Known] = []
        self._number(coordinator)

    def __len__(self):
        return len(self._states)

    def ask(self, at, event, argument):
        """The state after an event, and the effects."""
        asked = at, event, argument
        if asked not in self._answers:
            coordinator = self._copied(self._states[at])
            getattr(coordinator, event)(self._real(argument))
            effects = tuple(map(self._plain, coordinator.take_effects()))
            self._answers[asked] = self._number(coordinator), effects
        return self._answers[asked]

    def _number(self, coordinator):
        found = self._numbers.setdefault(frozen(coordinator), len(self._states))
        if found == len(self._states):
            self._states.append(coordinator)
            self.known.append(self._told(coordinator))
        return found

    def _told(self, coordinator):
        placement, history = coordinator.placement, coordinator.history
        hosts = tuple(map(placement.worker_of, range(len(self.layout.partitions))))
        (stable,) = {each.number for each in history.stable}
        line = tuple(each.number for each in history.line)
        return Known(tuple(coordinator.lives), hosts, stable, line, frozenset(history.keys()), coordinator.phase)

    def _copied(self, coordinator):
        """What never changes is shared."""
        shared = [self.layout, *(each for of in coordinator.history.taken for each in of)]
        return copy.deepcopy(coordinator, {id(each): each for each in shared})

    def _real(self, argument):
        """A worker's name is itself; of a message the epoch, the number and the partition are told."""
        match argument:
            case ("ready", partition, epoch):
                return Ready(partition, epoch)
            case ("stored", partition, epoch, number):
                return Stored(epoch, self._checkpoint(partition, number, epoch))
            case ("unreadable", partition, epoch, key):
                return Unreadable(partition, epoch, key)
        return argument

    def _checkpoint(self, partition, number, epoch):
        of, key = self.layout.partitions[partition], key_of(self.layout, partition, number, epoch)
        sent, received = ({each.id: number for each in channels} for channels in (of.outputs, of.inputs))
        return Checkpoint(partition, number, epoch, sent, received, (key,))

    def _plain(self, effect):
        match effect:
            case Order(worker, partition, Restore(epoch, checkpoint)):
                return Order(worker, partition, Back(epoch, checkpoint.number, (*checkpoint.state_keys, None)[0]))
            case Order() | Delete() | Sweep():
                return effect


def frozen(value):
    """A value by which states of the coordinator can be told apart; a checkpoint is what its name says."""
    match value:
        case Checkpoint(partition, number, epoch):
            return partition, number, epoch
        case Layout() | RecoveryStrategy() | FunctionType() | type():
            return None
        case dict():
            return frozenset((key, frozen(each)) for key, each in value.items())
        case list() | tuple():
            return tuple(map(frozen, value))
        case set() | frozenset():
            return frozenset(value)
        case int() | str() | Phase() | None:
            return value
    return tuple(frozen(each) for each in vars(value).values())
