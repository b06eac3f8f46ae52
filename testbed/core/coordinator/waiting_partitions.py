"""Which receivers a sender must not wait for while partitions are lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from testbed.core.coordinator.last_announced import LastAnnounced
from testbed.core.dataflow.layout import Layout


class WaitingPartitions:
    """A sink goes on while nothing on which it depends is lost.

    A partition that sends to such a sink, directly or through others, must not wait for a receiver that leads to no
    such sink: that receiver waits for a lost partition, or for a receiver of its own that does. A sender that leads to
    no such sink waits as usual.
    """

    def __init__(self, layout: Layout) -> None:
        sinks = (each.number for each in layout.partitions if not each.outputs)
        self._needed = {sink: layout.with_upstream([sink]) for sink in sinks}
        self._receivers = {each.number: {channel.receiver for channel in each.outputs} for each in layout.partitions}
        self._announced = LastAnnounced()

    def changes(self, up: Iterable[int], lost: Collection[int]) -> dict[int, tuple[int, ...]]:
        """For each of these partitions, the receivers for which it must not wait, if they have changed.

        `lost`: those that are down, or are being restored.
        """
        going_on = frozenset[int]().union(*(needed for needed in self._needed.values() if needed.isdisjoint(lost)))
        return self._announced.changes(
            {n: self._receivers[n].difference(going_on, lost) if n in going_on else () for n in up}
        )

    def told(self, partition: int) -> tuple[int, ...]:
        """The receivers for which this partition was told not to wait."""
        return self._announced.last(partition)

    def forget(self, partitions: Iterable[int]) -> None:
        """These are down or restored: they have been told nothing."""
        self._announced.forget(partitions)
