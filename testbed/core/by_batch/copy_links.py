"""The sending end of channels whose receivers have copies: what the receiver is sent, its copy is sent as well."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from testbed.core.by_batch.cutting import border_of
from testbed.core.effects import Grant, PartitionEffect, Send
from testbed.core.frames import Frame, FrameKind
from testbed.core.layout import Channel
from testbed.core.links import OutputLink


@dataclass
class _CopyLink:
    """A channel to a copy.

    held      whether it waits for the copy to be ready
    backlog   how many of the frames that wait do not hold the sender up
    """

    link: OutputLink
    held: bool = True
    backlog: int = 0


class CopyLinks:
    """One link for each channel with a copy at its end, with an epoch and a credit of its own.

    No other link of the channel ever has this epoch, so credit and frames are told apart by channel and epoch.
    """

    def __init__(self, effects: list[PartitionEffect], frames_in_flight: int) -> None:
        self._effects, self._frames_in_flight = effects, frames_in_flight
        self._links: dict[int, _CopyLink] = {}
        self._started = False

    def clear(self) -> None:
        """The sender is restored: whoever has a copy hears of it anew."""
        self._links, self._started = {}, False

    def attach(self, channel: Channel, epoch: int, frames: Iterable[Frame]) -> None:
        """A copy takes part, once it is ready, and begins with these frames."""
        link = OutputLink(channel)
        link.restore(epoch, 0, self._frames_in_flight)
        link.waiting.extend(replace(frame, epoch=epoch) for frame in frames)
        self._links[channel.id] = _CopyLink(link)

    def detach(self, channels: Collection[int]) -> None:
        """There is no copy any more at the end of these channels."""
        for channel in channels:
            self._links.pop(channel, None)

    def release(self, epoch: int, arrived: Mapping[int, int]) -> None:
        """The copies of this epoch are ready; they have these batches already, by channel."""
        for channel, each in self._links.items():
            if each.held and each.link.epoch == epoch:
                skip(each.link, arrived.get(channel))
                each.held, each.backlog = False, len(each.link.waiting)
                self._flush(each)

    def start(self) -> None:
        """The sender goes on."""
        self._started = True
        for each in self._links.values():
            self._flush(each)

    def post(self, frame: Frame) -> None:
        """Send a frame to the copy, too, if there is one."""
        each = self._links.get(frame.channel)
        if each is not None:
            each.link.waiting.append(replace(frame, epoch=each.link.epoch))
            self._flush(each)

    def on_credit(self, grant: Grant) -> None:
        """Maybe it is a copy that can take more."""
        each = self._links.get(grant.channel)
        if each is not None and each.link.epoch == grant.epoch:
            each.link.credit += grant.frames
            self._flush(each)

    @property
    def congested(self) -> bool:
        """Whether something waits for a copy's credit that is no backlog."""
        return any(each.link.waiting and not each.held and not each.backlog for each in self._links.values())

    @property
    def empty(self) -> bool:
        """Whether no frame waits."""
        return not any(each.link.waiting for each in self._links.values())

    @property
    def ends(self) -> dict[int, tuple[int, int]]:
        """By channel the epoch and the credit of its link to a copy."""
        return {channel: (each.link.epoch, each.link.credit) for channel, each in self._links.items()}

    def _flush(self, each: _CopyLink) -> None:
        while each.link.waiting and each.link.credit > 0 and self._started and not each.held:
            each.link.credit -= 1
            each.backlog = max(0, each.backlog - 1)
            self._effects.append(Send(each.link.waiting.popleft(), to_copy=True))


def skip(link: OutputLink, batch: int | None) -> None:
    """Of what waits, let go what the receiver has: all up to the border of this batch."""
    if batch is None:
        return
    known = [at for at, each in enumerate(link.waiting) if each.kind is FrameKind.BORDER and border_of(each) <= batch]
    for _ in range(known[-1] + 1 if known else 0):
        link.waiting.popleft()
