"""The coordinator's orders to make copies, feed them, and close them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import replace

from testbed.core.control import (
    Attach,
    Attached,
    Detach,
    Dismiss,
    Ready,
    Rejoin,
    Restore,
    Stable,
    ToPartition,
    Trim,
)
from testbed.core.coordinator.copies import Attachment, Copies, Copy
from testbed.core.coordinator.garbage import Garbage
from testbed.core.coordinator.history import History
from testbed.core.coordinator.placement import Placement
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import CoordinatorEffect, Order, Placed, SweepCopy


class Copying:
    """Has copies made, promoted and closed for one coordinator.

    It shares the history, the placement, the effects and the garbage of the coordinator, and what it knows of who is
    down.

    copies        those that are there
    begin_epoch   counts the coordinator's epoch on, and returns it
    restored_at   what a partition is told that rolls back to the line in this epoch
    """

    def __init__(
        self,
        layout: Layout,
        copies: Copies,
        history: History,
        placement: Placement,
        down: Set[int],
        effects: list[CoordinatorEffect],
        garbage: Garbage,
        begin_epoch: Callable[[], int],
        restored_at: Callable[[int, int], Restore],
    ) -> None:
        self.copies = copies
        self._layout, self._history, self._placement = layout, history, placement
        self._down, self._effects, self._garbage = down, effects, garbage
        self._begin_epoch, self._restored_at = begin_epoch, restored_at

    def promotable(self, partitions: Iterable[int]) -> frozenset[int]:
        """Those of these partitions that have a copy which is not behind the line."""
        line = self._history.line
        return frozenset(number for number in partitions if self.copies.can_replace(number, line[number].number))

    def make(self) -> None:
        """Make what is wanted and is not there. All partitions are up: a copy reads what all of its senders send."""
        if places := self.copies.places(self._placement):
            self.attach(places, frozenset())

    def attach(self, made: dict[int, str], back: frozenset[int]) -> None:
        """Make copies, by partition at these workers, and let those that are there hear from who is back."""
        line = self._history.line
        heard = self.copies.hear_from(back)
        self.drop({n for n in heard if not self.copies.can_replace(n, line[n].number)})
        heard = {number: channels for number, channels in heard.items() if number in self.copies.of}
        if not made and not heard:
            return
        epoch = self._begin_epoch()
        for number, worker in made.items():
            self._placement.seat(worker)
            self.copies.of[number] = Copy(worker, epoch, line[number].number)
        self._effects.append(Placed(epoch))
        for number in made:
            self._order(number, replace(self._restored_at(number, epoch), muted=True))
            heard[number] = tuple(each.id for each in self._layout.partitions[number].inputs)
        for number in heard.keys() - made.keys():
            self._order(number, Rejoin(epoch, line[number].number, (), heard[number]))
        outputs = self.copies.senders_to(sorted(channel for channels in heard.values() for channel in channels))
        self.copies.attachments[epoch] = Attachment(set(heard), outputs)
        for sender, channels in outputs.items():
            self._tell(sender, Attach(epoch, line[sender].number, channels))

    def on_ready(self, message: Ready) -> None:
        """A copy is ready to read what its senders have for it."""
        self.copies.on_ready(message.partition, message.epoch, message.arrived, self._history.stable)
        self._attach_if_ready()

    def drop(self, partitions: Iterable[int]) -> None:
        """The copies of these partitions are lost, or of no more use."""
        for number in sorted(self.copies.of.keys() & set(partitions)):
            copy = self.copies.drop(number)
            self._garbage.end_reading(number, copy.life)
            if copy.worker in self._placement.workers:
                self._effects.append(Order(copy.worker, number, Dismiss(copy.life)))
            else:
                self._effects.append(SweepCopy(self._layout.partitions[number].name, copy.life))
            inputs = (each.id for each in self._layout.partitions[number].inputs)
            for sender, channels in self.copies.senders_to(inputs).items():
                self._tell(sender, Detach(copy.life, channels))
        self._attach_if_ready()

    def drop_unreadable(self, partition: int, epoch: int) -> None:
        """A copy can't be made: it is tried again at another line. What an earlier life says is void."""
        copy = self.copies.of.get(partition)
        if copy is not None and copy.life == epoch:
            self.drop({partition})

    def announce_stable(self) -> None:
        """Copies let go what lies before the stable line; those that are too far behind it are dropped."""
        self.drop(self.copies.stragglers(self._history.stable))
        for number, copy in self.copies.of.items():
            self._order(number, Stable(copy.life, self._history.stable[number].number))

    def trim(self) -> None:
        """Copies of sinks let go what their primaries have emitted. Others keep what receivers may ask for again."""
        for number, copy in self.copies.of.items():
            if copy.runs and (published := self._history.published(number)):
                self._order(number, Trim(copy.life, published))

    def _attach_if_ready(self) -> None:
        for epoch, each in self.copies.released():
            for sender, channels in each.outputs.items():
                arrived = tuple((channel, each.arrived[channel]) for channel in channels if channel in each.arrived)
                self._tell(sender, Attached(epoch, arrived))

    def _tell(self, sender: int, message: ToPartition) -> None:
        """Say something about copies to who sends to them, if it is not down: then it forgets them anyway."""
        worker = self._placement.worker_of(sender)
        if sender not in self._down and worker is not None:
            self._effects.append(Order(worker, sender, message))

    def _order(self, number: int, message: ToPartition) -> None:
        self._effects.append(Order(self.copies.of[number].worker, number, message))
