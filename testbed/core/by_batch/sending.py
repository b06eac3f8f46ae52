"""Sends batch by batch, and retains the output for receivers that roll back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from testbed.core.by_batch.backlog import Backlog
from testbed.core.by_batch.copy_links import CopyLinks
from testbed.core.by_batch.cutting import BORDER
from testbed.core.by_batch.retained import Retained
from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.effects import Grant, Send
from testbed.core.frames import Frame, FrameKind
from testbed.core.partition.links import OutputLink
from testbed.core.partition.sending import Sending


class BatchSending(Sending):
    """Borders end batches on all channels. Everything is retained until no recovery can ask for it.

    A channel whose receiver has failed waits for nothing: its output is only retained. Once the receiver is restored,
    the channel starts again with what was sent since the receiver's checkpoint. The partition does not wait for this
    backlog, so that the other receivers go on; it waits for credit for newer output. A receiver that waits for a lost
    partition has a backlog, too. The partition does not wait for it, either, as long as the coordinator says so.

    retained    what is kept
    copies      the links to copies of receivers; what is tentative is not for them
    unawaited   the channels whose receivers may take as long as they like
    muted       whether the partition is a copy itself: what it would send is only retained
    tentative   whether what is sent misses input: then it is not numbered, nor retained
    """

    def __init__(self, layout: PartitionLayout, *parts: Any) -> None:
        """`parts`: as of `Sending`; the last is `retained_bytes` of `PartitionLimits`."""
        *common, self._retained_bytes = parts
        super().__init__(layout, *common)
        self.spilled = self.retained = Retained(self._links, 0)
        self._down: frozenset[int] = frozenset()
        self._backlogs: dict[int, Backlog] = {}
        self.unawaited: frozenset[int] = frozenset()
        self.copies, self.muted = CopyLinks(self._effects, self._full_credit), False
        self.tentative = False

    def restore_at(self, epoch: int, sent: Mapping[int, int], number: int, muted: bool = False) -> None:
        """Go on in this epoch at the checkpoint with this number."""
        super().restore(epoch, sent, ())
        self.muted = muted
        self.copies.clear()
        self.retained.forget_readers()
        stem, most_bytes = f"{self._name}/sent-{{}}-{epoch}", self._retained_bytes or 0
        self.spilled = self.retained = Retained(self._links, number, stem, most_bytes, self._effects)
        self._down, self._backlogs, self.tentative = frozenset(), {}, False
        self.unawaited = frozenset()

    def start(self) -> None:
        super().start()
        self.copies.start()

    def on_credit(self, grant: Grant) -> None:
        super().on_credit(grant)
        self.copies.on_credit(grant)

    def attach(self, epoch: int, channels: Iterable[int], number: int) -> None:
        """The receivers of these channels have copies, at the checkpoint with this number or behind it."""
        for channel in channels:
            self.copies.attach(self._links[channel].channel, epoch, self.retained, number)

    def promote(self, epoch: int) -> None:
        """This copy is the primary from now on: all that it retains waits for `go_on`."""
        self.muted = False
        self.rejoin(epoch, self._links, self.retained.number)

    def end_batch(self, batch: int) -> None:
        """All of a batch has been sent."""
        kind = FrameKind.TENTATIVE_BORDER if self.tentative else FrameKind.BORDER
        watermark_ns = self._watermarks.current_ns
        for link in self._links.values():
            self._post(link, Frame(kind, link.epoch, link.channel.id, link.sent, watermark_ns, BORDER.pack(batch)))

    def announce(self) -> None:
        """Borders tell how far event time is."""

    def mark(self, number: int) -> None:
        """A checkpoint is taken."""
        self.retained.mark(number)

    def trim(self, number: int) -> None:
        """No recovery will roll back beyond the checkpoint with this number."""
        self.retained.trim(number)

    def lose(self, receivers: Collection[int]) -> None:
        """These partitions have failed."""
        lost = [link for link in self._links.values() if link.channel.receiver in receivers]
        self._down |= {link.channel.id for link in lost}
        for link in lost:
            link.waiting.clear()
            self._end_backlog(link.channel.id)

    def do_not_wait_for(self, receivers: Collection[int]) -> None:
        """What these receivers do not take is read from what is retained, once they take it.

        Frames that queued up meanwhile do not hold the partition up after a receiver goes on, either.
        """
        of = frozenset(n for n, link in self._links.items() if link.channel.receiver in receivers) - self._down
        for channel in of - self._backlogs.keys():
            link, first = self._links[channel], self.retained.since(channel, self.retained.number)
            # What lies before the stable line is not retained: the receiver has it from an earlier life of this sender.
            place = max(first, self.retained.end(channel) - len(link.waiting))
            link.waiting.clear()
            self._backlogs[channel] = Backlog(self.retained, link, place, replays=False)
            self._backlogs[channel].release()
        over, self.unawaited = self.unawaited - of, of
        for channel in over & self._backlogs.keys():
            if not self._backlogs[channel].held:
                self._backlogs[channel].release()
            self._flush(self._links[channel])

    def rejoin(self, epoch: int, channels: Iterable[int], number: int) -> None:
        """The receivers of these channels are back at their checkpoint with this number; they begin with `go_on`."""
        found = frozenset(channels)
        for channel in found:
            link = self._links[channel]
            link.restore(epoch, link.sent, self._full_credit)
            self._end_backlog(channel)
            place = self.retained.since(channel, number)
            self._backlogs[channel] = Backlog(self.retained, link, place, replays=True)
        self.copies.detach(found)
        self._down -= found

    def go_on(self, epoch: int, arrived: Mapping[int, int] | None = None) -> None:
        """Send on the channels that started again in this epoch; their receivers already have the batches `arrived`."""
        for channel in self.awaiting_go:
            link = self._links[channel]
            if link.epoch == epoch:
                self._backlogs[channel].release((arrived or {}).get(channel))
                if self._started:
                    self._flush(link)

    def on_fetched(self, key: str, frames: Sequence[Frame]) -> None:
        """Retained output is in memory again."""
        channel = self.retained.on_fetched(key, frames)
        if channel is not None and self._started:
            self._flush(self._links[channel])
            self.copies.flush(channel)

    @property
    def congested(self) -> bool:
        """Whether frames that are no backlog wait for credit, or more is retained than the store accepts."""
        if self.retained.overfull:
            return True
        if not self._backlogs:
            return super().congested
        late = any(each.holds_up for channel, each in self._backlogs.items() if channel not in self.unawaited)
        return late or any(link.waiting for channel, link in self._links.items() if channel not in self._backlogs)

    @property
    def empty(self) -> bool:
        pending = any(each.pending for each in self._backlogs.values())
        return not pending and super().empty and self.copies.empty

    @property
    def replaying(self) -> bool:
        return any(each.replays for each in self._backlogs.values()) or super().replaying

    @property
    def awaiting_go(self) -> frozenset[int]:
        """The channels that have started again and send nothing yet."""
        return frozenset(channel for channel, each in self._backlogs.items() if each.held)

    @property
    def unheard(self) -> frozenset[int]:
        """The channels whose receivers have failed."""
        return self._down

    def credit(self, channel: int) -> int:
        """How many more frames may be sent on a channel."""
        return self._links[channel].credit

    def _send(self, link: OutputLink, batch: pa.RecordBatch | None) -> None:
        if not self.tentative:
            super()._send(link, batch)
            return
        kind, watermark_ns = FrameKind.TENTATIVE, self._watermarks.current_ns
        self._post(link, Frame(kind, link.epoch, link.channel.id, link.sent, watermark_ns, b"", batch))

    def _post(self, link: OutputLink, frame: Frame) -> None:
        """While a channel has a backlog, exact frames are sent as part of it; tentative ones wait behind it."""
        channel = link.channel.id
        if not self.tentative and self._retained_bytes is not None:
            self.retained.add(frame)
            self.copies.post(frame)
        if channel in self._down or self.muted or (channel in self._backlogs and not self.tentative):
            self._tally.protocol_bytes += frame.protocol_bytes()
            if channel in self.unawaited and self._started:
                self._flush(link)
        else:
            super()._post(link, frame)

    def _flush(self, link: OutputLink) -> None:
        channel = link.channel.id
        if (backlog := self._backlogs.get(channel)) is not None:
            for frame in backlog.take():
                self._effects.append(Send(frame))
            if backlog.over and channel not in self.unawaited:
                self._end_backlog(channel)
        if channel not in self._backlogs:
            super()._flush(link)

    def _end_backlog(self, channel: int) -> None:
        if (backlog := self._backlogs.pop(channel, None)) is not None:
            backlog.close()
