"""Output that a partition keeps after it was sent, for receivers that go back to a checkpoint while it goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from testbed.core.frames import Frame, FrameKind


class Retained:
    """Every frame that was sent since a checkpoint which no recovery goes behind, by channel.

    With batches, checkpoints of one number lie at the same border in all partitions, so nothing is in flight at them:
    what the receiver of a channel lacks at its checkpoint is what the sender has sent since its own of that number.
    """

    def __init__(self, channels: Iterable[int], number: int) -> None:
        """`number`: of the checkpoint at which the partition is."""
        self._frames: dict[int, deque[Frame]] = {channel: deque() for channel in channels}
        self._begun = dict.fromkeys(self._frames, 0)
        self._marks: deque[tuple[int, dict[int, int]]] = deque([(number, dict(self._begun))])
        self.frames = 0

    @property
    def number(self) -> int:
        """The checkpoint since which all is here."""
        return self._marks[0][0]

    def add(self, frame: Frame) -> None:
        """A frame was sent."""
        self._frames[frame.channel].append(frame)
        self.frames += 1

    def mark(self, number: int) -> None:
        """A checkpoint is taken: what is added from now on is after it."""
        self._marks.append((number, {c: self._begun[c] + len(frames) for c, frames in self._frames.items()}))

    def trim(self, number: int) -> None:
        """No recovery will go behind the checkpoint with this number: what lies before it is let go."""
        while len(self._marks) > 1 and self._marks[1][0] <= number:
            self._marks.popleft()
        for channel, until in self._marks[0][1].items():
            frames = self._frames[channel]
            for _ in range(until - self._begun[channel]):
                frames.popleft()
                self.frames -= 1
            self._begun[channel] = until

    def has_other_than(self, *kinds: FrameKind) -> bool:
        """Whether a frame of another kind is here."""
        return any(frame.kind not in kinds for frames in self._frames.values() for frame in frames)

    def after(self, channel: int, number: int) -> Iterator[Frame]:
        """What was sent on a channel since the checkpoint with this number. Raises `KeyError` if it was let go."""
        mark = dict(self._marks)[number]
        skipped = mark[channel] - self._begun[channel]
        return (frame for at, frame in enumerate(self._frames[channel]) if at >= skipped)
