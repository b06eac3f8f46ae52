"""The sending end of a channel whose receiver has a copy: the copy gets everything that the receiver gets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from testbed.core.by_batch.backlog import Backlog
from testbed.core.by_batch.retained import Retained
from testbed.core.dataflow.layout import Channel
from testbed.core.effects import Grant, PartitionEffect, Send
from testbed.core.frames import Frame
from testbed.core.partition.links import OutputLink


@dataclass
class _CopyLink:
    """A channel to a copy. What the copy does not take yet is a backlog, so that it is not kept in memory twice."""

    link: OutputLink
    retained: Retained
    backlog: Backlog | None

    def end_backlog(self) -> None:
        if self.backlog is not None:
            self.backlog.close()
            self.backlog = None


class CopyLinks:
    """One link for each channel with a copy at its end, with an epoch and a credit of its own.

    No other link of the channel ever has this epoch, so credit and frames are told apart by channel and epoch.

    What waits for a copy's credit does not hold the sender up: a copy that gets no input while others go on without
    would stop them all. The coordinator drops a copy that falls too far behind.
    """

    def __init__(self, effects: list[PartitionEffect], frames_in_flight: int) -> None:
        self._effects, self._frames_in_flight = effects, frames_in_flight
        self._links: dict[int, _CopyLink] = {}
        self._started = False

    def clear(self) -> None:
        """The sender is restored: whoever has a copy hears of it anew."""
        self._links, self._started = {}, False

    def attach(self, channel: Channel, epoch: int, retained: Retained, number: int) -> None:
        """A copy takes part, once it is ready, with what was sent since the checkpoint with this number."""
        self.detach([channel.id])
        link = OutputLink(channel)
        link.restore(epoch, 0, self._frames_in_flight)
        backlog = Backlog(retained, link, retained.since(channel.id, number), replays=True)
        self._links[channel.id] = _CopyLink(link, retained, backlog)

    def detach(self, channels: Collection[int]) -> None:
        """There is no copy any more at the end of these channels."""
        for channel in channels:
            if (each := self._links.pop(channel, None)) is not None:
                each.end_backlog()

    def release(self, epoch: int, arrived: Mapping[int, int]) -> None:
        """The copies of this epoch are ready; they have these batches already, by channel."""
        for channel, each in self._links.items():
            if each.backlog is not None and each.backlog.held and each.link.epoch == epoch:
                each.backlog.release(arrived.get(channel))
                self._flush(each)

    def start(self) -> None:
        """The sender goes on."""
        self._started = True
        for each in self._links.values():
            self._flush(each)

    def post(self, frame: Frame) -> None:
        """Send a frame that has just been retained to the copy, too, if there is one."""
        each = self._links.get(frame.channel)
        if each is None or each.backlog is not None:
            return
        if self._started and each.link.credit > 0:
            each.link.credit -= 1
            self._effects.append(Send(replace(frame, epoch=each.link.epoch), to_copy=True))
        else:
            place = each.retained.end(frame.channel) - 1
            each.backlog = Backlog(each.retained, each.link, place, replays=False)
            each.backlog.release()

    def flush(self, channel: int) -> None:
        """More of what is retained on a channel is in memory."""
        if channel in self._links:
            self._flush(self._links[channel])

    def on_credit(self, grant: Grant) -> None:
        """Maybe it is a copy that can take more."""
        each = self._links.get(grant.channel)
        if each is not None and each.link.epoch == grant.epoch:
            each.link.credit += grant.messages
            self._flush(each)

    @property
    def empty(self) -> bool:
        """Whether no frame waits."""
        return not any(each.backlog.pending for each in self._links.values() if each.backlog is not None)

    @property
    def ends(self) -> dict[int, tuple[int, int]]:
        """By channel the epoch and the credit of its link to a copy."""
        return {channel: (each.link.epoch, each.link.credit) for channel, each in self._links.items()}

    def _flush(self, each: _CopyLink) -> None:
        if not self._started or each.backlog is None:
            return
        for frame in each.backlog.take():
            self._effects.append(Send(frame, to_copy=True))
        if each.backlog.over:
            each.end_backlog()
