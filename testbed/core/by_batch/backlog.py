"""The backlog of a channel: retained frames that its sender has still to send."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from testbed.core.by_batch.retained import Retained
from testbed.core.frames import Frame
from testbed.core.partition.links import OutputLink


class Backlog:
    """Frames are taken from what is retained when they are sent, since it may be too much for memory.

    What was there when it was released does not hold the partition up; what came after that does.

    replays   whether what it sends was sent before, in another epoch
    """

    def __init__(self, retained: Retained, link: OutputLink, place: int, *, replays: bool) -> None:
        """`place`: of the first frame to send. Nothing is sent until `release`."""
        self.replays = replays
        self._retained, self._link, self._next = retained, link, place
        self._until: int | None = None
        retained.begin(self, link.channel.id, place)

    @property
    def held(self) -> bool:
        """Whether it has yet to be released."""
        return self._until is None

    @property
    def pending(self) -> bool:
        """Whether there is anything to send."""
        return self._next < self._retained.end(self._link.channel.id)

    @property
    def over(self) -> bool:
        """Whether all that is retained has been sent."""
        return not self.held and not self.pending

    @property
    def holds_up(self) -> bool:
        """Whether something waits that came after the release."""
        return self._until is not None and self._next >= self._until and self.pending

    def release(self, arrived: int | None = None) -> None:
        """The receiver is ready; it has all up to the end of the batch `arrived` already."""
        channel = self._link.channel.id
        if arrived is not None:
            self._next = max(self._next, self._retained.behind(channel, arrived))
        self._until = self._retained.end(channel)

    def take(self) -> Iterator[Frame]:
        """What can be sent now: it is in memory, and there is credit for it."""
        while not self.held and self.pending and self._link.credit > 0:
            frame = self._retained.read(self, self._link.channel.id, self._next)
            if frame is None:
                return
            self._next += 1
            self._link.credit -= 1
            yield replace(frame, epoch=self._link.epoch)

    def close(self) -> None:
        """Nothing more will be taken."""
        self._retained.leave(self)
