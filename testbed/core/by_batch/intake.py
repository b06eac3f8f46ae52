"""Reads the input of a partition batch by batch, in an order that content decides, not arrival."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from testbed.core.by_batch.cutting import border_of
from testbed.core.checkpoints import NO_BATCH
from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.effects import Grant, PartitionEffect
from testbed.core.frames import BORDERS, Frame, FrameKind
from testbed.core.partition.counts_and_watermarks import Tally
from testbed.core.partition.intake import Intake
from testbed.core.partition.links import InputLink


@dataclass
class _Borders:
    """The borders in the queue of a channel.

    arrived    the last border that has arrived, taken or not, but for those of tentative batches
    queued     the batches that end in the queue, in order
    following  for each of these borders the frames between it and the next whose credit has not gone back
    """

    arrived: int = NO_BATCH
    queued: deque[int] = field(default_factory=deque)
    following: deque[int] = field(default_factory=deque)


class BatchIntake(Intake):
    """A batch is run once every channel has a border: the lowest of these ends the batch, and the channels that have it
    are read up to it, one after the other in the order of their numbers.

    Credit for the batch that is being gathered goes back on arrival, since a batch may be longer than the credit.
    Credit for later ones goes back when the batch before them has been read, which bounds what waits here.

    batch      the batch that is being run, or was last
    finished   the last batch that was run to its border
    """

    def __init__(self, layout: PartitionLayout, tally: Tally, effects: list[PartitionEffect]) -> None:
        super().__init__(layout, tally, effects)
        self._borders = {channel: _Borders() for channel in sorted(self._links)}
        self._running: deque[int] = deque()
        self.batch = self.finished = NO_BATCH

    def restore_at(self, epoch: int, received: Mapping[int, int], batch: int) -> None:
        """Go on in this epoch behind the border of a batch."""
        super().restore(epoch, received)
        self._borders = {channel: _Borders(batch) for channel in self._borders}
        self._running.clear()
        self.batch = self.finished = batch

    def rejoin(self, epoch: int, channels: Iterable[int]) -> None:
        """The senders of these channels start again in this epoch, with full credit; queued frames remain."""
        for channel in channels:
            self._links[channel].epoch = epoch
            of = self._borders[channel]
            of.following = deque(0 for _ in of.following)

    def arrived(self, channels: Iterable[int]) -> dict[int, int]:
        """The last border that has arrived on each of these channels."""
        return {channel: self._borders[channel].arrived for channel in channels}

    def epoch(self, channel: int) -> int:
        """The epoch of the frames that count on a channel."""
        return self._links[channel].epoch

    def owes(self, channel: int) -> int:
        """For how many frames in the queue of a channel credit has not gone back."""
        return sum(self._borders[channel].following)

    def ready(self) -> list[int]:
        found = self.next()
        return [] if found is None else [found]

    def next(self) -> int | None:
        """The channel whose turn it is in the batch that is being run; None while no batch is complete."""
        if not self._running:
            self._begin_batch()
        return self._running[0] if self._running else None

    def take(self, channel: int) -> None:
        frame = self.head(channel)
        super().take(channel)
        if frame.kind in BORDERS:
            self._running.popleft()
            of = self._borders[channel]
            of.queued.popleft()
            if (owed := of.following.popleft()) > 0:
                self._effects.append(Grant(channel, self._links[channel].epoch, owed))
            if not self._running:
                self.finished = self.batch

    @property
    def at_border(self) -> bool:
        """Whether no batch is being run: so it is after the last border of one was taken."""
        return not self._running

    def _begin_batch(self) -> None:
        """Begin the next batch if it is complete."""
        borders = self._borders
        if borders and all(each.queued for each in borders.values()):
            self.batch = min(each.queued[0] for each in borders.values())
            self._running.extend(channel for channel, each in borders.items() if each.queued[0] == self.batch)

    def _has_arrived(self, link: InputLink, frame: Frame) -> bool:
        if frame.kind is FrameKind.BORDER:
            return border_of(frame) <= self._borders[frame.channel].arrived
        return super()._has_arrived(link, frame)

    def _queue(self, link: InputLink, frame: Frame) -> None:
        super()._queue(link, frame)
        of = self._borders[frame.channel]
        if of.queued:
            of.following[-1] += 1
        else:
            self.return_credit(frame.channel)
        if frame.kind in BORDERS:
            of.queued.append(border_of(frame))
            of.following.append(0)
        if frame.kind is FrameKind.BORDER:
            of.arrived = border_of(frame)
