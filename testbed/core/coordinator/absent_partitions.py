"""Tracks missing input: which partitions are absent, and which have gone on without them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from testbed.core.coordinator.last_announced import LastAnnounced
from testbed.core.dataflow.layout import Layout


class AbsentPartitions:
    """Absent are the partitions that are down, and those all of whose inputs are absent.

    A partition that has turned tentative is corrected by being restored, once nothing that it depends on is down. With
    it go all tentative ones upstream of it: they depend on no more than it does.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._senders = {each.number: {channel.sender for channel in each.inputs} for each in layout.partitions}
        self._announced = LastAnnounced()
        self._tentative: set[int] = set()

    @property
    def tentative(self) -> frozenset[int]:
        """The partitions that have said that they are tentative."""
        return frozenset(self._tentative)

    def absent(self, down: Collection[int]) -> frozenset[int]:
        """The partitions from which nothing will come while these are down."""
        found = set(down)
        while more := {n for n, of in self._senders.items() if of and n not in found and of <= found}:
            found |= more
        return frozenset(found)

    def changes(self, up: Iterable[int], down: Collection[int]) -> dict[int, tuple[int, ...]]:
        """For each partition that is up, its absent neighbours, if they are not those announced last."""
        absent = self.absent(down)
        return self._announced.changes({number: self._senders[number] & absent for number in up})

    def turned(self, partition: int) -> None:
        """A partition has turned tentative."""
        self._tentative.add(partition)

    def forget(self, partitions: Iterable[int]) -> None:
        """These are down or restored: they have been told nothing, and are not tentative."""
        gone = frozenset(partitions)
        self._announced.forget(gone)
        self._tentative -= gone

    def corrected_with(self, down: Collection[int]) -> frozenset[int]:
        """The tentative partitions that can roll back while these partitions are down."""
        up = self._tentative.difference(down)
        return frozenset(number for number in up if not self._layout.with_upstream([number]).intersection(down))
