"""What the coordinator has told partitions of others next to them, so that it tells them what has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Told:
    """For each partition, the neighbours named in the last message to it; none before the first."""

    def __init__(self) -> None:
        self._told: dict[int, tuple[int, ...]] = {}

    def news(self, neighbours: Mapping[int, Iterable[int]]) -> dict[int, tuple[int, ...]]:
        """For each partition whose neighbours are others than it was told, the new ones; they count as told."""
        now = {number: tuple(sorted(found)) for number, found in sorted(neighbours.items())}
        changed = {number: found for number, found in now.items() if found != self.last(number)}
        self._told.update(changed)
        return changed

    def last(self, partition: int) -> tuple[int, ...]:
        """What this partition was told last."""
        return self._told.get(partition, ())

    def forget(self, partitions: Iterable[int]) -> None:
        """These are down or restored: they have been told nothing."""
        for number in partitions:
            self._told.pop(number, None)
