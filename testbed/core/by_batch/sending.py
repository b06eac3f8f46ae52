"""What a partition sends batch by batch, and keeps for receivers that go back while it goes on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from testbed.core.by_batch.copy_links import CopyLinks, skip
from testbed.core.by_batch.cutting import BORDER
from testbed.core.by_batch.retained import Retained
from testbed.core.effects import Grant
from testbed.core.frames import Frame, FrameKind
from testbed.core.links import OutputLink
from testbed.core.sending import Sending

_TENTATIVE = {FrameKind.DATA: FrameKind.TENTATIVE, FrameKind.BORDER: FrameKind.TENTATIVE_BORDER}


class BatchSending(Sending):
    """Borders end batches on all channels. Everything is retained until no recovery can ask for it.

    A channel whose receiver has failed waits for nothing: what would be sent is only retained. Once the receiver is
    restored, the channel begins anew with what was sent since the receiver's checkpoint. That backlog does not hold the
    partition up, so that the other receivers go on; what is sent after it does.

    copies      the links to copies of receivers; what is tentative is not for them
    muted       whether the partition is a copy itself: what it would send is only retained
    tentative   whether what is sent misses input: then it is not numbered, nor retained
    """

    def __init__(self, *parts: Any) -> None:
        """`parts`: as of `Sending`."""
        super().__init__(*parts)
        self._retained = Retained(self._links, 0)
        self._down: frozenset[int] = frozenset()
        self._awaiting_go: frozenset[int] = frozenset()
        self._backlog: dict[int, int] = {}  # by channel: how many frames of it have yet to be sent
        self.copies, self.muted = CopyLinks(self._effects, self._frames_in_flight), False
        self.tentative = False

    def restore_at(self, epoch: int, sent: Mapping[int, int], number: int, muted: bool = False) -> None:
        """Go on in this epoch at the checkpoint with this number."""
        super().restore(epoch, sent, ())
        self.muted = muted
        self.copies.clear()
        self._retained = Retained(self._links, number)
        self._down = self._awaiting_go = frozenset()
        self._backlog, self.tentative = {}, False

    def start(self) -> None:
        super().start()
        self.copies.start()

    def on_credit(self, grant: Grant) -> None:
        super().on_credit(grant)
        self.copies.on_credit(grant)

    def attach(self, epoch: int, channels: Iterable[int], number: int) -> None:
        """The receivers of these channels have copies, at the checkpoint with this number or behind it."""
        for channel in channels:
            self.copies.attach(self._links[channel].channel, epoch, self._retained.after(channel, number))

    def promote(self, epoch: int) -> None:
        """This copy is the primary from now on: all that it retains waits for `go_on`."""
        self.muted = False
        self.rejoin(epoch, self._links, self._retained.number)

    def end_batch(self, batch: int) -> None:
        """All of a batch has been sent."""
        kind, watermark_ns = self._kind(FrameKind.BORDER), self._watermarks.current_ns
        for link in self._links.values():
            self._post(link, Frame(kind, link.epoch, link.channel.id, link.sent, watermark_ns, BORDER.pack(batch)))

    def announce(self) -> None:
        """Borders tell how far event time is."""

    def mark(self, number: int) -> None:
        """A checkpoint is taken."""
        self._retained.mark(number)

    def trim(self, number: int) -> None:
        """No recovery will go behind the checkpoint with this number."""
        self._retained.trim(number)

    def lose(self, receivers: Collection[int]) -> None:
        """These partitions have failed."""
        lost = [link for link in self._links.values() if link.channel.receiver in receivers]
        self._down |= {link.channel.id for link in lost}
        for link in lost:
            link.waiting.clear()
            self._backlog.pop(link.channel.id, None)

    def rejoin(self, epoch: int, channels: Iterable[int], number: int) -> None:
        """The receivers of these channels are back at their checkpoint with this number; they begin with `go_on`."""
        found = frozenset(channels)
        for channel in found:
            link = self._links[channel]
            link.restore(epoch, link.sent, self._frames_in_flight)
            link.waiting.extend(replace(each, epoch=epoch) for each in self._retained.after(channel, number))
        self.copies.detach(found)
        self._down, self._awaiting_go = self._down - found, self._awaiting_go | found

    def go_on(self, epoch: int, arrived: Mapping[int, int] | None = None) -> None:
        """Send on the channels that began anew in this epoch; their receivers have these batches already."""
        found = {channel for channel in self._awaiting_go if self._links[channel].epoch == epoch}
        self._awaiting_go -= found
        for channel in found:
            skip(self._links[channel], (arrived or {}).get(channel))
            self._backlog[channel] = len(self._links[channel].waiting)
            if self._started:
                self._flush(self._links[channel])

    @property
    def congested(self) -> bool:
        """Whether something waits for credit that is no backlog."""
        exempt = self._awaiting_go.union(self._backlog)
        held_up = any(link.waiting for channel, link in self._links.items() if channel not in exempt)
        return held_up or self.copies.congested

    @property
    def empty(self) -> bool:
        return super().empty and self.copies.empty

    @property
    def retained_frames(self) -> int:
        """How many frames are retained."""
        return self._retained.frames

    @property
    def retained_from(self) -> int:
        """The checkpoint since which all is retained."""
        return self._retained.number

    @property
    def unheard(self) -> frozenset[int]:
        """The channels whose receivers have failed."""
        return self._down

    def credit(self, channel: int) -> int:
        """How many more frames may be sent on a channel."""
        return self._links[channel].credit

    @property
    def retains_tentative(self) -> bool:
        """Whether something is retained that is not exact."""
        return self._retained.has_other_than(FrameKind.DATA, FrameKind.BORDER)

    def _kind(self, exact: FrameKind) -> FrameKind:
        return _TENTATIVE[exact] if self.tentative else exact

    def _send(self, link: OutputLink, batch: pa.RecordBatch | None) -> None:
        if not self.tentative:
            super()._send(link, batch)
            return
        kind, watermark_ns = self._kind(FrameKind.DATA), self._watermarks.current_ns
        self._post(link, Frame(kind, link.epoch, link.channel.id, link.sent, watermark_ns, b"", batch))

    def _post(self, link: OutputLink, frame: Frame) -> None:
        if not self.tentative:
            self._retained.add(frame)
            self.copies.post(frame)
        if link.channel.id in self._down or self.muted:
            self._tally.protocol_bytes += frame.protocol_bytes()
        else:
            super()._post(link, frame)

    def _flush(self, link: OutputLink) -> None:
        channel, before = link.channel.id, len(link.waiting)
        if channel in self._awaiting_go:
            return
        super()._flush(link)
        if channel in self._backlog:
            self._backlog[channel] -= before - len(link.waiting)
            if self._backlog[channel] <= 0:
                del self._backlog[channel]
