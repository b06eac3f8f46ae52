"""What the coordinator has told partitions of others next to them, so that it tells them what has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Told:
    """By partition the others of which it was told last; nobody of whom nothing was said."""

    def __init__(self) -> None:
        self._told: dict[int, tuple[int, ...]] = {}

    def news(self, others: Mapping[int, Iterable[int]]) -> dict[int, tuple[int, ...]]:
        """What is to be told now, by partition, given all that holds of each; it counts as told."""
        of = {number: tuple(sorted(found)) for number, found in sorted(others.items())}
        changed = {number: told for number, told in of.items() if told != self._told.get(number, ())}
        self._told.update(changed)
        return changed

    def forget(self, partitions: Iterable[int]) -> None:
        """These are down or restored: they have been told nothing."""
        for number in partitions:
            self._told.pop(number, None)
