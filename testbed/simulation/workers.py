"""The workers of a simulated run, with the messages in flight to and from them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from testbed.core.control import ToCoordinator, decode_message
from testbed.core.effects import Discard, Fetch, Publish, Spill, Store
from testbed.core.partition.partition import Partition

LEAVE = b""  # in place of an order: a recovery begins in which the partition will be restored
Event: TypeAlias = tuple[Callable[..., None], *tuple[object, ...]]  # what can happen, and to what


@dataclass
class SimulatedWorker:
    """A process with partitions.

    partitions   by number
    restored     by number the checkpoint that the partition rolled back to last
    ready        by number what the partition can do by itself
    orders       from the coordinator, by number of the partition, encoded, or `LEAVE`
    messages     to the coordinator, encoded
    storing      what is asked of the store, checkpoints and spilled output, by number of the partition
    publishing   output on its way out, by number of the partition
    """

    name: str
    partitions: dict[int, Partition] = field(default_factory=dict)
    restored: dict[int, int] = field(default_factory=dict)
    ready: dict[int, list[Event]] = field(default_factory=dict)
    orders: deque[tuple[int, bytes]] = field(default_factory=deque)
    messages: deque[bytes] = field(default_factory=deque)
    storing: deque[tuple[int, Store | Spill | Fetch | Discard]] = field(default_factory=deque)
    publishing: deque[tuple[int, Publish]] = field(default_factory=deque)

    def hear_of(self, restored: Iterable[int]) -> None:
        """A recovery begins in which these are restored, as a slot hears before the orders to its partitions."""
        known = self.partitions.keys() | {number for number, _ in self.orders}
        self.orders += [(number, LEAVE) for number in restored if number in known]

    def leave(self, number: int) -> Partition | None:
        """Stop a partition that will be restored, and return it; None if there is none that ever was."""
        partition = self.partitions.get(number)
        if partition is None or partition.epoch < 0:
            return None
        partition.leave()
        return partition

    def dismiss(self, number: int, life: int) -> None:
        """The copy that was made in this life, or could not be, is of no more use."""
        if number in self.partitions and self.partitions[number].epoch in (-1, life):
            del self.partitions[number]
            self.ready.pop(number, None)  # one that could not be made has none

    def next_message(self) -> ToCoordinator:
        """The oldest of its messages to the coordinator, which it has sent then."""
        message = decode_message(self.messages.popleft())
        if not isinstance(message, ToCoordinator):
            raise TypeError(f"the coordinator was sent a {type(message).__name__}")
        return message

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way to it or from it."""
        return not (self.orders or self.messages or self.storing or self.publishing)
