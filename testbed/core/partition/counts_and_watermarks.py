"""The progress of a partition: its counts, and its event time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testbed.operators import END_OF_TIME_NS, START_OF_TIME_NS


@dataclass
class Tally:
    """What a partition has counted since it was made.

    data_bytes        of data sent but for what the protocol added, by the size of every 32nd message
    protocol_bytes    what the protocol added; both as if each message of a range travelled by itself
    duplicates        messages that had been received before
    stale             messages of other epochs
    """

    records_in: int = 0
    records_out: int = 0
    data_bytes: int = 0
    protocol_bytes: int = 0
    checkpoints: int = 0
    forced: int = 0
    duplicates: int = 0
    stale: int = 0


class Watermarks:
    """How far event time is, on each input channel but those of a cycle, and for the partition.

    current_ns   no record before this event time will be processed; of a source, none will be read
    """

    def __init__(self) -> None:
        self.current_ns = START_OF_TIME_NS
        self._of: dict[int, int] = {}

    def restore(self, of: Mapping[int, int], current_ns: int) -> None:
        """Go on from these event times, by channel and for the partition."""
        self._of, self.current_ns = dict(of), current_ns

    @property
    def of_channels(self) -> dict[int, int]:
        """Event time by input channel."""
        return dict(self._of)

    def would_advance(self, channel: int, watermark_ns: int) -> bool:
        """Whether `advance` would return something."""
        if watermark_ns <= self._of.get(channel, END_OF_TIME_NS):
            return False
        others = (reached_ns for each, reached_ns in self._of.items() if each != channel)
        return min(watermark_ns, *others, END_OF_TIME_NS) > self.current_ns

    def advance(self, channel: int, watermark_ns: int) -> int | None:
        """A frame on this channel says how far event time is there.

        Returns the later event time that all channels have reached by that, which is to become `current_ns`; None if
        there is none.
        """
        if channel not in self._of or watermark_ns <= self._of[channel]:
            return None
        self._of[channel] = watermark_ns
        lowest = min(self._of.values())
        return lowest if lowest > self.current_ns else None
