"""What a partition sends batch by batch, and keeps for receivers that go back while it goes on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from testbed.core.by_batch.cutting import BORDER
from testbed.core.by_batch.retained import Retained
from testbed.core.effects import Send
from testbed.core.frames import Frame, FrameKind
from testbed.core.layout import PartitionLayout
from testbed.core.links import OutputLink
from testbed.core.sending import Sending

_TENTATIVE = {FrameKind.DATA: FrameKind.TENTATIVE, FrameKind.BORDER: FrameKind.TENTATIVE_BORDER}


@dataclass
class _Backlog:
    """What a channel that began anew has yet to send of what is retained.

    next    the place of the first frame that has not been sent
    until   the frames before this place do not hold the partition up; None until all are ready to go on
    """

    next: int
    until: int | None = None

    @property
    def holds_up(self) -> bool:
        return self.until is not None and self.next >= self.until


class BatchSending(Sending):
    """Borders end batches on all channels. Everything is retained until no recovery can ask for it.

    A channel whose receiver has failed waits for nothing: what would be sent is only retained. Once the receiver is
    restored, the channel begins anew with what was sent since the receiver's checkpoint. That backlog does not hold the
    partition up, so that the other receivers go on; what is sent after it does.

    retained    what is kept
    tentative   whether what is sent misses input: then it is not numbered, nor retained
    """

    def __init__(self, layout: PartitionLayout, *parts: Any) -> None:
        """`parts`: as of `Sending`; the last is `retained_bytes` of `PartitionLimits`."""
        *common, self._retained_bytes = parts
        super().__init__(layout, *common)
        self._name = layout.name
        self.retained = Retained(self._links, 0)
        self._down: frozenset[int] = frozenset()
        self._backlogs: dict[int, _Backlog] = {}
        self.tentative = False

    def restore_at(self, epoch: int, sent: Mapping[int, int], number: int) -> None:
        """Go on in this epoch at the checkpoint with this number."""
        super().restore(epoch, sent, ())
        stem, most_bytes = f"{self._name}/sent-{{}}-{epoch}", self._retained_bytes or 0
        self.retained = Retained(self._links, number, stem, most_bytes, self._effects)
        self._down, self._backlogs, self.tentative = frozenset(), {}, False

    def end_batch(self, batch: int) -> None:
        """All of a batch has been sent."""
        kind, watermark_ns = self._kind(FrameKind.BORDER), self._watermarks.current_ns
        for link in self._links.values():
            self._post(link, Frame(kind, link.epoch, link.channel.id, link.sent, watermark_ns, BORDER.pack(batch)))

    def announce(self) -> None:
        """Borders tell how far event time is."""

    def mark(self, number: int) -> None:
        """A checkpoint is taken."""
        self.retained.mark(number)

    def trim(self, number: int) -> None:
        """No recovery will go behind the checkpoint with this number."""
        self.retained.trim(number)

    def lose(self, receivers: Collection[int]) -> None:
        """These partitions have failed."""
        lost = [link for link in self._links.values() if link.channel.receiver in receivers]
        self._down |= {link.channel.id for link in lost}
        for link in lost:
            link.waiting.clear()
            self._end_backlog(link.channel.id)

    def rejoin(self, epoch: int, channels: Iterable[int], number: int) -> None:
        """The receivers of these channels are back at their checkpoint with this number; they begin with `go_on`."""
        found = frozenset(channels)
        for channel in found:
            link = self._links[channel]
            link.restore(epoch, link.sent, self._frames_in_flight)
            self._end_backlog(channel)
            self._backlogs[channel] = _Backlog(self.retained.since(channel, number))
        self._down -= found

    def go_on(self, epoch: int) -> None:
        """Send on the channels that began anew in this epoch."""
        for channel in self.awaiting_go:
            link = self._links[channel]
            if link.epoch == epoch:
                self._backlogs[channel].until = self.retained.end(channel)
                if self._started:
                    self._flush(link)

    def on_fetched(self, key: str, frames: Sequence[Frame]) -> None:
        """Retained output is in memory again."""
        channel = self.retained.on_fetched(key, frames)
        if channel is not None and self._started:
            self._flush(self._links[channel])

    @property
    def congested(self) -> bool:
        """Whether something waits for credit that is no backlog, or more is retained than the store takes in."""
        if not self._backlogs:
            return self.retained.overfull or super().congested
        late = any(each.holds_up for each in self._backlogs.values())
        waits = any(link.waiting for channel, link in self._links.items() if channel not in self._backlogs)
        return self.retained.overfull or late or waits

    @property
    def empty(self) -> bool:
        return not self._backlogs and super().empty

    @property
    def replaying(self) -> bool:
        return bool(self._backlogs) or super().replaying

    @property
    def awaiting_go(self) -> frozenset[int]:
        """The channels that have begun anew and send nothing yet."""
        return frozenset(channel for channel, each in self._backlogs.items() if each.until is None)

    @property
    def unheard(self) -> frozenset[int]:
        """The channels whose receivers have failed."""
        return self._down

    def credit(self, channel: int) -> int:
        """How many more frames may be sent on a channel."""
        return self._links[channel].credit

    def _kind(self, exact: FrameKind) -> FrameKind:
        return _TENTATIVE[exact] if self.tentative else exact

    def _send(self, link: OutputLink, batch: pa.RecordBatch | None) -> None:
        if not self.tentative:
            super()._send(link, batch)
            return
        kind, watermark_ns = self._kind(FrameKind.DATA), self._watermarks.current_ns
        self._post(link, Frame(kind, link.epoch, link.channel.id, link.sent, watermark_ns, b"", batch))

    def _post(self, link: OutputLink, frame: Frame) -> None:
        """While a channel has a backlog, exact frames are sent as part of it; tentative ones wait behind it."""
        channel = link.channel.id
        if not self.tentative and self._retained_bytes is not None:
            self.retained.add(frame)
        if channel in self._down or (channel in self._backlogs and not self.tentative):
            self._tally.protocol_bytes += frame.protocol_bytes()
        else:
            super()._post(link, frame)

    def _flush(self, link: OutputLink) -> None:
        channel = link.channel.id
        if channel in self._backlogs:
            self._send_backlog(link, self._backlogs[channel])
        if channel not in self._backlogs:
            super()._flush(link)

    def _send_backlog(self, link: OutputLink, backlog: _Backlog) -> None:
        """Send what is retained, as far as there is credit and it is in memory."""
        channel = link.channel.id
        if backlog.until is None:
            return
        while backlog.next < self.retained.end(channel):
            frame = self.retained.read(channel, backlog.next) if link.credit > 0 else None
            if frame is None:
                return
            link.credit -= 1
            backlog.next += 1
            self._effects.append(Send(replace(frame, epoch=link.epoch)))
        self._end_backlog(channel)

    def _end_backlog(self, channel: int) -> None:
        if self._backlogs.pop(channel, None) is not None:
            self.retained.leave(channel)
