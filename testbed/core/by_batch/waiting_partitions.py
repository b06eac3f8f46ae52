"""Which partitions are up and wait for lost ones, and who is to know it: those that send to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from testbed.core.by_batch.told import Told
from testbed.core.layout import Layout


class WaitingPartitions:
    """A partition waits if one on whose output it depends is down: it takes no input until that one is back.

    Its senders must not wait with it, since others that are up may need what they send.
    """

    def __init__(self, layout: Layout) -> None:
        self._upstream = {each.number: layout.with_upstream([each.number]) for each in layout.partitions}
        self._receivers = {each.number: {channel.receiver for channel in each.outputs} for each in layout.partitions}
        self._told = Told()

    def news(self, up: Iterable[int], down: Collection[int]) -> dict[int, tuple[int, ...]]:
        """By partition that is up those of its receivers that wait, where they are others than it was told last."""
        of = {number: self._receivers[number].difference(down) for number in up}
        waiting = {n for n in set().union(*of.values()) if not self._upstream[n].isdisjoint(down)}
        return self._told.news({number: found & waiting for number, found in of.items()})

    def forget(self, partitions: Iterable[int]) -> None:
        """These are down or restored: they have been told nothing."""
        self._told.forget(partitions)
