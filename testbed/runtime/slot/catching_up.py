"""Partitions that are restored or promoted until they reach their earlier progress, and what they process meanwhile."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from testbed.core.checkpoints import OUTSIDE
from testbed.core.partition.partition import Partition
from testbed.core.partition.partition_status import progress
from testbed.core.ranges import size_of_messages
from testbed.runtime.network.messages import Loaded, Peers, Reached
from testbed.runtime.slot.restoring import ReadBack


@dataclass
class _Way:
    """The way of a partition since its restore: where it began, where it must get, and how much it has processed."""

    partition: Partition
    position: int
    records_in: int
    goal: Mapping[int, int]
    size_bytes: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the partition is as far as it ever was."""
        return all(at >= self.goal.get(channel, 0) for channel, at in progress(self.partition).items())

    @property
    def records(self) -> int:
        """What the partition has processed; of a source, the positions that it has read."""
        if OUTSIDE in progress(self.partition):
            return self.partition.source_input.position - self.position
        return self.partition.tally.records_in - self.records_in


class CatchingUp:
    """The partitions of a slot that are restored or promoted, and not yet as far as they ever were.

    A partition that has no life behind it is never told of. One that was lost before it could report how far it was has
    arrived as soon as it goes on.
    """

    def __init__(self) -> None:
        self._goals: dict[int, Mapping[int, int]] = {}
        self._ways: dict[int, _Way] = {}
        self._loaded: list[tuple[Loaded, float]] = []  # and when [s, monotonic]
        self._reached: list[tuple[Reached, float]] = []

    def expect(self, peers: Peers) -> None:
        """A recovery begins: what these partitions were on the way to is void."""
        for number in {*peers.restored, *peers.reached}:
            self._ways.pop(number, None)
            self._goals.pop(number, None)
        self._goals |= peers.reached

    def begin(self, partition: Partition, found: ReadBack) -> None:
        """A partition of this slot has rolled back with what was read for it."""
        loaded = Loaded(partition.number, partition.epoch, found.seconds, found.size_bytes, 0.0)
        self._loaded.append((loaded, time.monotonic()))
        self.follow(partition)

    def follow(self, partition: Partition) -> None:
        """A partition of this slot is back, at a checkpoint or as the copy that it was."""
        number = partition.number
        if number in self._goals:
            records_in = partition.tally.records_in
            self._ways[number] = _Way(partition, partition.source_input.position, records_in, self._goals[number])

    def count(self, partition: Partition, channel: int) -> None:
        """A partition is about to process what is at the head of a channel."""
        if partition.number in self._ways:
            self._ways[partition.number].size_bytes += size_of_messages(partition.intake.head(channel))

    def look(self, now_s: float) -> None:
        """Check which partitions have caught up [s, monotonic]. A partition that does not run yet has not, even if it
        has nothing to process again."""
        for number, way in list(self._ways.items()):
            if way.partition.running and way.is_over:
                del self._ways[number]
                reached = Reached(number, way.partition.epoch, way.records, way.size_bytes, 0.0)
                self._reached.append((reached, now_s))

    def take_loaded(self) -> tuple[Loaded, ...]:
        """Those that got their state since the last call."""
        loaded, self._loaded, now_s = self._loaded, [], time.monotonic()
        return tuple(replace(each, age_s=now_s - at_s) for each, at_s in loaded)

    def take_reached(self) -> tuple[Reached, ...]:
        """Those that arrived since the last call."""
        reached, self._reached, now_s = self._reached, [], time.monotonic()
        return tuple(replace(each, age_s=now_s - at_s) for each, at_s in reached)

    def clear(self) -> None:
        """Forget all partitions: the session is over."""
        self._goals, self._ways, self._loaded, self._reached = {}, {}, [], []
