"""The two ends of a channel as the partitions there see them: epoch, numbers, and frames in flight."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from testbed.core.dataflow.layout import Channel
from testbed.core.frames import Frame
from testbed.operators import START_OF_TIME_NS


@dataclass(slots=True)
class InputLink:
    """The receiving end of a channel.

    epoch      frames of another epoch do not count; -1 before the first restore
    arrived    the number of the last data that has arrived
    received   the number of the last data that was processed
    queue      the frames that have arrived and were not processed yet
    blocked    whether the protocol lets this channel wait
    """

    channel: Channel
    epoch: int = -1
    arrived: int = 0
    received: int = 0
    queue: deque[Frame] = field(default_factory=deque)
    blocked: bool = False

    def restore(self, epoch: int, received: int) -> None:
        """Go on in this epoch after the data with this number; nothing has arrived yet."""
        self.epoch, self.arrived, self.received = epoch, received, received
        self.queue.clear()
        self.blocked = False


@dataclass(slots=True)
class OutputLink:
    """The sending end of a channel.

    epoch          of every frame that is sent; -1 before the first restore
    sent           the number of the last data that was sent or waits
    credit         how many more frames the receiver can take
    waiting        the frames that wait for credit, or for the partition to go; if the channel closes a cycle, the next
                   of them (`Overflow`)
    replayed_to    data up to this number was sent before the last restore, too
    announced_ns   the event time of the last data: the receiver knows that no earlier record follows
    """

    channel: Channel
    epoch: int = -1
    sent: int = 0
    credit: int = 0
    waiting: deque[Frame] = field(default_factory=deque)
    replayed_to: int = 0
    announced_ns: int = START_OF_TIME_NS

    def restore(self, epoch: int, sent: int, credit: int) -> None:
        """Go on in this epoch after the data with this number, with this credit; nothing waits."""
        self.epoch, self.sent, self.replayed_to, self.credit = epoch, sent, sent, credit
        self.waiting.clear()
        self.announced_ns = START_OF_TIME_NS

    @property
    def replays(self) -> bool:
        """Whether the next frame, if it is in memory, is one that was sent before the last restore, too."""
        return bool(self.waiting) and self.waiting[0].sequence <= self.replayed_to
