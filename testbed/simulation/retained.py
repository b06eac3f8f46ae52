"""How much of what it keeps for others a simulated partition may have in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from weakref import WeakKeyDictionary

from experiments.errors import AftershockError
from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.by_batch.retained import HELD_UP_AT
from testbed.core.by_batch.segments import Segment, held_bytes
from testbed.core.partition import PartitionLimits


class TooMuchRetained(AftershockError):
    """A partition has more retained output in memory than it may."""


class RetainedMemory:
    """A partition that has too much in memory finishes what it is about, and takes in nothing more."""

    def __init__(self, limits: PartitionLimits) -> None:
        self._most = limits.retained_bytes
        self._before: dict[tuple[int, int], int] = {}
        self._counted = WeakKeyDictionary[
            Segment, tuple[int, int]
        ]()  # of each segment how many frames, and their bytes

    def check(self, partition: BatchedPartition) -> None:
        """Whenever something has happened to it. Raises `TooMuchRetained`."""
        name, life = partition.layout.name, (partition.number, partition.epoch)
        in_memory = [each for each in partition.retained.segments if each.frames]
        if self._most is None:
            if in_memory:
                raise TooMuchRetained(f"{name} keeps output that nobody asks for")
            return
        held = sum(self._held(each) for each in in_memory if not each.stored)
        before = self._before.get(life, 0)
        if held > before > HELD_UP_AT * self._most:
            raise TooMuchRetained(f"{name} had {before} bytes of retained output in memory and now has {held}")
        self._before[life] = held
        self._check_read_back(partition, in_memory)

    def check_left(self, partition: BatchedPartition, stored: Collection[str]) -> None:
        """At the end, with all keys of the store: of this life it has what the partition may need, and no more."""
        begin, end = partition.retained.stem.split("{}")
        left = {key for key in stored if key.startswith(begin) and key.endswith(end)}
        if left != partition.retained.keys:
            raise TooMuchRetained(f"{partition.layout.name} has {sorted(left)}, and needs {partition.retained.keys}")

    def _held(self, segment: Segment) -> int:
        """The bytes of its frames. They are only ever added, so that those that are new are counted."""
        count, size = self._counted.get(segment, (0, 0))
        frames = segment.frames or []
        if len(frames) == count:
            return size
        size += sum(held_bytes(frame) for frame in frames[count:])
        self._counted[segment] = len(frames), size
        return size

    def _check_read_back(self, partition: BatchedPartition, in_memory: list[Segment]) -> None:
        """One segment for the receiver of a channel, and one for its copy."""
        read_back = Counter(each.channel for each in in_memory if each.stored)
        for channel, segments in read_back.items():
            if segments > 1 + (channel in partition.copy_ends):
                raise TooMuchRetained(
                    f"{partition.layout.name} has more than one segment of channel {channel} read back"
                )
