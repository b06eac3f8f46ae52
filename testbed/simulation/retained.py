"""How much retained output a simulated partition may have in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from experiments.errors import AftershockError
from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.by_batch.retained import HELD_UP_AT
from testbed.core.by_batch.segments import RetainedSegment
from testbed.core.partition.partition import PartitionLimits
from testbed.core.segments import held_bytes

NOTHING = (0, 0)


class TooMuchRetained(AftershockError):
    """A partition has more retained output in memory than it may."""


class RetainedMemory:
    """A partition that has too much in memory finishes what it is about, and reads nothing more."""

    def __init__(self, limits: PartitionLimits) -> None:
        self._most = limits.retained_bytes
        self._before: dict[tuple[int, int], int] = {}
        # Of each segment in memory how many frames were counted, and their bytes.
        self._counted: dict[tuple[int, int], dict[RetainedSegment, tuple[int, int]]] = {}

    def check(self, partition: BatchedPartition) -> None:
        """Whenever something has happened to it. Raises `TooMuchRetained`."""
        name, life = partition.layout.name, (partition.number, partition.epoch)
        in_memory = [each for each in partition.sending.retained.segments if each.frames]
        if self._most is None:
            if in_memory:
                raise TooMuchRetained(f"{name} keeps output that no recovery asks for")
            return
        counted = self._counted.get(life, {})
        now = {each: _held(each, counted.get(each, NOTHING)) for each in in_memory if not each.stored}
        held, self._counted[life] = sum(size for _, size in now.values()), now
        before = self._before.get(life, 0)
        if held > before > HELD_UP_AT * self._most:
            raise TooMuchRetained(f"{name} had {before} bytes of retained output in memory and now has {held}")
        self._before[life] = held
        self._check_read_back(partition, in_memory)

    def check_left(self, partition: BatchedPartition, stored: Collection[str]) -> None:
        """At the end, with all keys of the store: of this life it has what the partition may need, and no more."""
        begin, end = partition.sending.retained.stem.split("{}")
        left = {key for key in stored if key.startswith(begin) and key.endswith(end)}
        if left != partition.sending.retained.keys:
            raise TooMuchRetained(
                f"{partition.layout.name} has {sorted(left)}, and needs {partition.sending.retained.keys}"
            )

    def _check_read_back(self, partition: BatchedPartition, in_memory: list[RetainedSegment]) -> None:
        """One segment for the receiver of a channel, and one for its copy."""
        stored = [each.channel for each in in_memory if each.stored]
        if not stored:
            return
        for channel, segments in Counter(stored).items():
            if segments > 1 + (channel in partition.sending.copies.ends):
                raise TooMuchRetained(
                    f"{partition.layout.name} has more than one segment of channel {channel} read back"
                )


def _held(segment: RetainedSegment, counted: tuple[int, int]) -> tuple[int, int]:
    """How many frames it has, and their bytes. They are only ever added, so that those that are new are counted."""
    count, size = counted
    frames = segment.frames or []
    if len(frames) == count:
        return counted
    return len(frames), size + sum(held_bytes(frame) for frame in frames[count:])
