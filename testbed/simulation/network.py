"""The frames in flight in a simulated run."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from random import Random

from experiments.errors import AftershockError
from testbed.core.by_batch.cutting import border_of
from testbed.core.by_batch.partition import BatchedPartition, is_muted
from testbed.core.dataflow.layout import Layout
from testbed.core.frames import Frame, FrameKind, FrameReader, encode
from testbed.core.partition.partition import Partition


class ContentChanged(AftershockError):
    """A partition has sent two different things under one number."""


class Network:
    """Channels keep their order and delay as they like. One to a copy is a channel of its own.

    numbered   how many numbers of frames are known; with batches each names one content
    """

    def __init__(self, layout: Layout, by_batch: bool, random: Random) -> None:
        self._by_batch, self._random = by_batch, random
        self._channels = layout.channels
        self._schemas = [channel.schema for channel in layout.channels]
        self._frames: list[deque[Frame]] = [deque() for _ in range(2 * len(layout.channels))]
        self._contents: dict[tuple[int, FrameKind, int], Frame] = {}

    @property
    def busy(self) -> list[int]:
        """Where something is under way: channels by their numbers, those to copies by numbers above all these."""
        return [channel for channel, frames in enumerate(self._frames) if frames]

    @property
    def numbered(self) -> int:
        """How many numbers of frames are known."""
        return len(self._contents)

    def under_way(self, channel: int, epoch: int) -> int:
        """How many frames of an epoch are under way."""
        frames, to_copy = self._both(channel)
        if not frames and not to_copy:  # most channels at most moments, and this is asked after every step
            return 0
        return sum(frame.epoch == epoch for frame in (*frames, *to_copy))

    def send(self, frame: Frame, to_copy: bool = False) -> None:
        """Raises `ContentChanged`."""
        if self._by_batch:
            self._compare(frame)
        self._both(frame.channel)[to_copy].append(self._through_the_wire(frame))

    def deliver(self, channel: int) -> Frame:
        """The next frame of a channel arrives."""
        return self._frames[channel].popleft()

    def lose(self, channel: int, epoch: int) -> None:
        """The sender has crashed: of what it had sent in this epoch, the last frames may not have got out."""
        sent = [frames for frames in self._both(channel) if any(frame.epoch == epoch for frame in frames)]
        frames = sent[0] if sent else deque()
        for _ in range(self._random.randint(0, self.under_way(channel, epoch))):
            if frames[-1].epoch == epoch:
                frames.pop()

    def lose_sent(self, partitions: Mapping[int, Partition]) -> None:
        """A worker with these partitions has crashed, by number: each channel from them may lose its last frames."""
        for channel in self._channels:
            sender = partitions.get(channel.sender)
            if sender is None or is_muted(sender):
                continue
            self.lose(channel.id, sender.sending.epoch(channel.id))
            if isinstance(sender, BatchedPartition) and channel.id in sender.sending.copies.ends:
                self.lose(channel.id, sender.sending.copies.ends[channel.id][0])

    def _both(self, channel: int) -> tuple[deque[Frame], deque[Frame]]:
        """What is under way on a channel, and what to a copy of its receiver."""
        return self._frames[channel], self._frames[channel + len(self._schemas)]

    def _compare(self, frame: Frame) -> None:
        """With batches a number names a content, in every life of the sender; what is tentative has no number."""
        if frame.kind not in (FrameKind.DATA, FrameKind.BORDER):
            return
        number = frame.sequence if frame.kind is FrameKind.DATA else border_of(frame)
        known = self._contents.setdefault((frame.channel, frame.kind, number), frame)
        if known is frame:
            return
        if replace(known, epoch=0, batch=None) != replace(frame, epoch=0, batch=None) or known.batch != frame.batch:
            raise ContentChanged(f"frame {number} of channel {frame.channel} is not what it was before")

    def _through_the_wire(self, frame: Frame) -> Frame:
        """Now and then as bytes and back: what doesn't survive that must not pass here."""
        if self._random.random() < 0.9:
            return frame
        (received,) = FrameReader(self._schemas).feed(encode(frame))
        return received
