"""What the coordinator last announced to each partition about its neighbours, so that it announces only changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class LastAnnounced:
    """For each partition, the neighbours named in the last message to it; none before the first."""

    def __init__(self) -> None:
        self._announced: dict[int, tuple[int, ...]] = {}

    def changes(self, neighbours: Mapping[int, Iterable[int]]) -> dict[int, tuple[int, ...]]:
        """The neighbours of each partition to which others were announced last. They now count as announced."""
        now = {number: tuple(sorted(found)) for number, found in sorted(neighbours.items())}
        changed = {number: found for number, found in now.items() if found != self.last(number)}
        self._announced.update(changed)
        return changed

    def last(self, partition: int) -> tuple[int, ...]:
        """What was announced to this partition last."""
        return self._announced.get(partition, ())

    def forget(self, partitions: Iterable[int]) -> None:
        """These are down or restored: nothing has been announced to them."""
        for number in partitions:
            self._announced.pop(number, None)
