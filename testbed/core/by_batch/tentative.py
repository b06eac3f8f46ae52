"""Batches that lack the input of absent partitions; their output is tentative."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from testbed.core.by_batch.cutting import border_of
from testbed.core.by_batch.intake import BatchIntake
from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.effects import Grant, PartitionEffect
from testbed.core.frames import BORDERS, RECORDS, Frame, FrameKind
from testbed.core.partition.counts_and_watermarks import Tally
from testbed.core.partition.links import InputLink


class TentativeIntake(BatchIntake):
    """Does not wait for channels from which nothing will come, nor for those that lag behind.

    A batch is complete if every channel has its exact border, or that of a later batch. From the first one that is not,
    the partition is tentative until it is restored, since its state has missed input. Its exact state is then lost
    anyway, so whatever comes too late for the batch that it belongs to is dropped.

    tentative   whether a batch was begun that was not complete
    held        whether no channel has its turn: what the last batch gave has not got out yet. The owner sets it
    """

    tentative: bool
    held: bool
    _absent: frozenset[int]
    _behind: set[int]
    _tentative_from: dict[int, int]  # by channel: the first batch of which a tentative border is queued
    _before: int | None  # while an incomplete batch was chosen and is not begun: the batch before it

    def __init__(self, layout: PartitionLayout, tally: Tally, effects: list[PartitionEffect]) -> None:
        super().__init__(layout, tally, effects)
        self._clear()

    def restore_at(self, epoch: int, received: Mapping[int, int], batch: int) -> None:
        super().restore_at(epoch, received, batch)
        self._clear()

    def miss(self, channels: Collection[int]) -> None:
        """Nothing will come on these channels. On others that were missed it will, and has to catch up."""
        self._reconsider()
        found = frozenset(channels)
        if self.tentative:
            self._behind |= self._absent - found
        self._absent = found

    def rejoin(self, epoch: int, channels: Iterable[int]) -> None:
        """The senders of these channels begin anew in this epoch: at exact batches, so what is tentative is dropped."""
        self._reconsider()
        channels = list(channels)
        super().rejoin(epoch, channels)
        for channel in channels:
            if self.tentative:
                self._drop_all_but_running(channel)
                self._behind.add(channel)
            else:
                self._drop_tentative(channel)
            self._tentative_from.pop(channel, None)
        self._absent -= set(channels)

    def next(self) -> int | None:
        if self.held:
            return None
        self._reconsider()
        return super().next()

    def begin(self) -> None:
        """The batch that is next is run now. If it is not complete, the partition is tentative from here on."""
        if self._before is None:
            return
        self._before, self.tentative = None, True
        for channel in self._running:
            if self._is_tentative(channel, self.batch):
                self._drop_leading_data(channel)

    def _clear(self) -> None:
        self.tentative, self.held, self._before = False, False, None
        self._absent, self._behind, self._tentative_from = frozenset(), set(), {}

    def _begin_batch(self) -> None:
        if not (self.tentative or self._absent or self._tentative_from):
            super()._begin_batch()
            return
        heads = {channel: each.queued[0] for channel, each in self._borders.items() if each.queued}
        excused = self._absent | self._behind
        missing = self._borders.keys() - heads
        if missing and (missing - excused or not heads.keys() - excused):
            return
        if missing or any(self._is_tentative(channel, head) for channel, head in heads.items()):
            self._before = self.batch
        self.batch = min(heads.values())
        self._running.extend(channel for channel, head in heads.items() if head == self.batch)

    def _reconsider(self) -> None:
        """An incomplete batch that is not begun may be complete by now."""
        if self._before is not None:
            self._running.clear()
            self.batch, self._before = self._before, None

    def _is_tentative(self, channel: int, batch: int) -> bool:
        return channel in self._tentative_from and batch >= self._tentative_from[channel]

    def _queue(self, link: InputLink, frame: Frame) -> None:
        self._reconsider()
        if frame.kind in BORDERS:
            channel, batch = frame.channel, border_of(frame)
            if self._is_late(channel, frame.kind, batch):
                self._drop_late(link, frame)
                return
            self._behind.discard(channel)
            if frame.kind is FrameKind.TENTATIVE_BORDER:
                self._tentative_from.setdefault(channel, batch)
        super()._queue(link, frame)

    def _is_late(self, channel: int, kind: FrameKind, batch: int) -> bool:
        """Whether the batch was run without this border, or this channel has it already in another way."""
        of = self._borders[channel]
        last = max(self.batch, *of.queued) if of.queued else self.batch
        if kind is FrameKind.TENTATIVE_BORDER:
            return batch <= max(last, of.arrived)
        return self.tentative and batch <= last

    def _drop_late(self, link: InputLink, border: Frame) -> None:
        """Drop the batch that this border ends. At an exact partition, only tentative records are ever too late."""
        of, dropped = self._borders[border.channel], 0
        kinds = {FrameKind.TENTATIVE} if border.kind is FrameKind.TENTATIVE_BORDER else RECORDS
        while link.queue and link.queue[-1].kind in kinds:
            link.queue.pop()
            dropped += 1
        owed = min(dropped, of.following[-1]) if of.queued else 0
        if of.queued:
            of.following[-1] -= owed
        if border.kind is FrameKind.BORDER:
            of.arrived = border_of(border)
        self._effects.append(Grant(border.channel, link.epoch, owed + 1))

    def _drop_leading_data(self, channel: int) -> None:
        """Exact records before a tentative border are of a batch that the sender began in an earlier life."""
        queue = self._links[channel].queue
        while queue[0].kind is FrameKind.DATA:
            queue.popleft()

    def _drop_tentative(self, channel: int) -> None:
        """Drop the tentative records of a channel. The partition is exact: it has processed none of them."""
        link, of = self._links[channel], self._borders[channel]
        exact = [frame for frame in link.queue if frame.kind in (FrameKind.DATA, FrameKind.BORDER)]
        link.queue.clear()
        link.queue.extend(exact)
        while of.queued and self._is_tentative(channel, of.queued[-1]):
            of.queued.pop()
            of.following.pop()

    def _drop_all_but_running(self, channel: int) -> None:
        """Keep what belongs to the batch that is being run."""
        link, of = self._links[channel], self._borders[channel]
        kept = 0
        if channel in self._running:
            kept = 1 + next(at for at, frame in enumerate(link.queue) if frame.kind in BORDERS)
        while len(link.queue) > kept:
            link.queue.pop()
        while len(of.queued) > (kept > 0):
            of.queued.pop()
            of.following.pop()
