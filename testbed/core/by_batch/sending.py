"""What a partition sends batch by batch, and keeps for receivers that go back while it goes on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from testbed.core.by_batch.cutting import BORDER
from testbed.core.by_batch.retained import Retained
from testbed.core.frames import Frame, FrameKind
from testbed.core.links import OutputLink
from testbed.core.sending import Sending


class BatchSending(Sending):
    """Borders end batches on all channels. Everything is retained until no recovery can ask for it.

    A channel whose receiver has failed waits for nothing: what would be sent is only retained. Once the receiver is
    restored, the channel begins anew with what was sent since the receiver's checkpoint. Until it has caught up, its
    backlog does not hold the partition up, so that the other receivers go on.
    """

    _retained = Retained((), 0)
    _down: frozenset[int] = frozenset()
    _held: frozenset[int] = frozenset()
    _behind: frozenset[int] = frozenset()

    def restore_at(self, epoch: int, sent: Mapping[int, int], number: int) -> None:
        """Go on in this epoch at the checkpoint with this number."""
        super().restore(epoch, sent, ())
        self._retained = Retained(self._links, number)
        self._down = self._held = self._behind = frozenset()

    def end_batch(self, batch: int) -> None:
        """All of a batch has been sent."""
        for link in self._links.values():
            watermark_ns = self._watermarks.current_ns
            self._post(
                link, Frame(FrameKind.BORDER, link.epoch, link.channel.id, link.sent, watermark_ns, BORDER.pack(batch))
            )

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

    def rejoin(self, epoch: int, channels: Iterable[int], number: int) -> None:
        """The receivers of these channels are back at their checkpoint with this number; they begin with `go_on`."""
        found = frozenset(channels)
        for channel in found:
            link = self._links[channel]
            link.restore(epoch, link.sent, self._frames_in_flight)
            link.waiting.extend(replace(each, epoch=epoch) for each in self._retained.after(channel, number))
        self._down, self._held, self._behind = self._down - found, self._held | found, self._behind | found

    def go_on(self, epoch: int) -> None:
        """Send on the channels that began anew in this epoch."""
        found = {channel for channel in self._held if self._links[channel].epoch == epoch}
        self._held -= found
        if self._started:
            for channel in found:
                self._flush(self._links[channel])

    @property
    def congested(self) -> bool:
        """Whether something waits for credit, on a channel that is not behind."""
        return any(link.waiting for channel, link in self._links.items() if channel not in self._behind)

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

    def _post(self, link: OutputLink, frame: Frame) -> None:
        self._retained.add(frame)
        if link.channel.id in self._down:
            self._tally.protocol_bytes += frame.protocol_bytes()
        else:
            super()._post(link, frame)

    def _flush(self, link: OutputLink) -> None:
        if link.channel.id not in self._held:
            super()._flush(link)
            if not link.waiting:
                self._behind -= {link.channel.id}
