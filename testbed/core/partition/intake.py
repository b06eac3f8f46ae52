"""The input of a partition: frames queue by channel, and the channels take turns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from experiments.errors import AftershockError
from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.effects import Grant, PartitionEffect
from testbed.core.frames import TENTATIVE_KINDS, Frame, FrameKind
from testbed.core.partition.counts_and_watermarks import Tally, Watermarks
from testbed.core.partition.links import InputLink
from testbed.core.ranges import cut, gather


class ChannelGap(AftershockError):
    """Data on a channel is missing: a fault of the runtime or of a protocol, never to be passed over."""


class Intake:
    """The receiving ends of all input channels, and the credit that goes back on them.

    Frames of a channel are taken in their order. If several channels are ready, any of them may be next.
    """

    def __init__(
        self,
        layout: PartitionLayout,
        tally: Tally,
        effects: list[PartitionEffect],
        watermarks: Watermarks | None = None,
        in_range: int = 1,
    ) -> None:
        """`in_range`: the most messages that are taken together, as far as event time by `watermarks` allows."""
        self._name, self._tally, self._effects = layout.name, tally, effects
        self._links = {channel.id: InputLink(channel) for channel in layout.inputs}
        self._watermarks, self._in_range = watermarks, in_range
        self._last_served = -1

    def restore(self, epoch: int, received: Mapping[int, int]) -> None:
        """Go on in this epoch after the data with these numbers, by channel; what is queued is dropped."""
        for channel, link in self._links.items():
            link.restore(epoch, received[channel])

    def accept(self, frame: Frame) -> None:
        """Queue a frame that has arrived, unless it is of another epoch or has arrived before.

        Raises `ChannelGap` if data before it has not arrived. Tentative frames may come from a sender that
        rolled back, so their numbers mean nothing.
        """
        link = self._links[frame.channel]
        if frame.epoch != link.epoch:
            self._tally.stale += frame.messages
            return
        if self._has_arrived(link, frame):
            self._drop(frame)
            return
        if frame.kind is FrameKind.DATA:
            if (known := link.arrived - frame.sequence + frame.messages) > 0:
                again, frame = cut(frame, known)
                self._drop(again)
            link.arrived += frame.messages
        if frame.sequence != link.arrived and frame.kind not in TENTATIVE_KINDS:
            raise ChannelGap(f"{self._name}, channel {frame.channel}: {frame.sequence} came, not {link.arrived}")
        self._queue(link, frame)

    def ready(self) -> list[int]:
        """The channels with a frame that may be taken; those of a cycle go first, so that it does not fill up."""
        ready = [link.channel for link in self._links.values() if link.queue and not link.blocked]
        returning = [channel.id for channel in ready if channel.on_cycle]
        return returning or [channel.id for channel in ready]

    def next(self) -> int | None:
        """The ready channel whose turn it is; None if none is ready."""
        ready = self.ready()
        if not ready:
            return None
        self._last_served = next((channel for channel in ready if channel > self._last_served), ready[0])
        return self._last_served

    def head(self, channel: int) -> Frame:
        """The first frame in the queue of a channel that is ready; of ranges what can be processed at one go."""
        queue = self._links[channel].queue
        if self._watermarks is None or not queue[0].is_range:
            return queue[0]
        return gather(queue, partial(self._watermarks.would_advance, channel), self._in_range)

    def take(self, channel: int) -> None:
        """The first frame in the queue of a channel is being processed. Its number is that of the last data."""
        link = self._links[channel]
        link.received = link.queue.popleft().sequence

    def return_credit(self, channel: int, messages: int = 1) -> None:
        """The sender may send `messages` more messages on this channel."""
        self._effects.append(Grant(channel, self._links[channel].epoch, messages))

    def block(self, channel: int) -> None:
        """Let what comes on a channel wait."""
        self._links[channel].blocked = True

    def unblock(self) -> None:
        """Take from every channel again."""
        for link in self._links.values():
            link.blocked = False

    @property
    def blocks(self) -> bool:
        """Whether some channel has to wait."""
        return any(link.blocked for link in self._links.values())

    @property
    def empty(self) -> bool:
        """Whether no frame is queued."""
        return not any(link.queue for link in self._links.values())

    @property
    def received(self) -> dict[int, int]:
        """By channel the number of the last data that was processed."""
        return {channel: link.received for channel, link in self._links.items()}

    def _drop(self, again: Frame) -> None:
        self._tally.duplicates += again.messages
        self.return_credit(again.channel, again.messages)

    def _has_arrived(self, link: InputLink, frame: Frame) -> bool:
        return frame.kind is FrameKind.DATA and frame.sequence <= link.arrived

    def _queue(self, link: InputLink, frame: Frame) -> None:
        link.queue.append(frame)
