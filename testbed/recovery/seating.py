"""Which worker takes which partition: a worker has room for so many, and each partition goes where most room is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from testbed.core.recovery import World


def room_of(world: World, capacity: int | None) -> Counter[str]:
    """How many more partitions each worker can take; by default each takes an even share of all of them."""
    most = capacity or -(-world.partitions // world.slots)
    room = Counter(dict.fromkeys(sorted(world.workers), most))
    room.subtract(world.hosts.values())
    return room


def seated(partitions: Iterable[int], room: Mapping[str, int]) -> dict[int, str | None]:
    """Each goes to the worker with the most room (`incremental`, section 5), of several to the first by name."""
    left, seats = Counter(room), dict[int, str | None]()
    for number in partitions:
        worker = max(left, key=left.__getitem__)
        left[worker] -= 1
        seats[number] = worker
    return seats
