"""Recoveries that have begun: which partitions are not ready yet, and the messages to all of them once all are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from testbed.core.checkpoints import NO_BATCH
from testbed.core.control import Go, Ready
from testbed.core.dataflow.layout import Layout, PartitionLayout


@dataclass
class Underway:
    """
    taking_part   who is restored or promoted, and who rejoins them
    awaited       those that have yet to say that they are ready
    reached       by restored partition the last batch that a neighbour has whole from an earlier life of it
    arrived       by channel that starts again, the last batch that its receiver has whole
    """

    taking_part: set[int]
    awaited: set[int]
    reached: dict[int, int] = field(default_factory=dict)
    arrived: dict[int, int] = field(default_factory=dict)

    def lose(self, partitions: set[int]) -> None:
        """These take no part any more: they will be restored by a later recovery."""
        self.taking_part -= partitions
        self.awaited -= partitions

    def on_ready(self, message: Ready, layout: Layout) -> None:
        """A partition is back at its checkpoint, or has rejoined its neighbours."""
        self.arrived |= message.arrived
        self.awaited.discard(message.partition)
        for channel, batch in message.arrived.items():
            sender = layout.channels[channel].sender
            self.reached[sender] = max(batch, self.reached.get(sender, NO_BATCH))

    def go(self, partition: PartitionLayout, epoch: int) -> Go:
        """The message to a partition that takes part in the recovery of this epoch."""
        outputs = (each.id for each in partition.outputs)
        arrived = tuple((channel, self.arrived[channel]) for channel in outputs if channel in self.arrived)
        return Go(epoch, self.reached.get(partition.number, NO_BATCH), arrived)


class RecoveriesUnderway:
    """All recoveries that have begun and are not over, by epoch."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.of: dict[int, Underway] = {}

    def begin(self, epoch: int, taking_part: Iterable[int]) -> None:
        """A recovery begins, and waits for all who take part."""
        self.of[epoch] = Underway(set(taking_part), set(taking_part))

    def leave(self, partitions: Iterable[int]) -> None:
        """These take no part any more in what is under way: a later recovery restores them."""
        for recovery in self.of.values():
            recovery.lose(set(partitions))

    def clear(self) -> None:
        """A recovery of everybody takes the place of all others."""
        self.of.clear()

    def restoring(self, lives: Sequence[int]) -> set[int]:
        """Who is restored or promoted by one of them, given the epoch of each partition's present life."""
        return {number for epoch, each in self.of.items() for number in each.taking_part if lives[number] == epoch}

    def on_ready(self, message: Ready) -> None:
        """A partition is ready; of recoveries that are not under way any more it says nothing."""
        if message.epoch in self.of:
            self.of[message.epoch].on_ready(message, self._layout)

    def over(self) -> Iterator[tuple[int, Underway]]:
        """The recoveries in which all partitions are ready, with their epochs. Each is over once it was yielded."""
        for epoch in list(self.of):
            if not self.of[epoch].awaited:
                yield epoch, self.of.pop(epoch)
