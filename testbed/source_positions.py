"""The positions of a dataflow's sources in the topic that they read, from the journal."""

from __future__ import annotations

from collections.abc import Mapping


def events_read(positions: Mapping[str, int]) -> int:
    """Events of the topic that all sources have read, from where each of their partitions is."""
    return sum(offsets(positions).values())


def offsets(positions: Mapping[str, int]) -> dict[str, int]:
    """By partition of the topic, before which offset all sources have read: `persons.0` and `auctions.0` share one."""
    found: dict[str, int] = {}
    for name, position in positions.items():
        partition = name.rsplit(".", 1)[1]
        found[partition] = min(position, found.get(partition, position))
    return found
