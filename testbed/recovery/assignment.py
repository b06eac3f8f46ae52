"""Assigns partitions to workers: each partition goes to the worker with the most free capacity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from testbed.core.recovery import World

ROUNDING = 1e-9  # relative: costs of 0.1 and 0.2 fit a room of 0.3
Costs = Mapping[int, float]


def even_share(world: World) -> int:
    """How many partitions each worker takes at the start, if they are spread evenly."""
    return -(-world.partitions // world.slots)


def room_of(world: World, capacity: float, costs: Costs | None = None) -> dict[str, float]:
    """How much more each worker can take; without costs each partition costs 1."""
    room = dict.fromkeys(world.workers, float(capacity))
    for number, worker in world.hosts.items():
        room[worker] -= 1 if costs is None else costs[number]
    return room


def assigned(partitions: Iterable[int], room: Mapping[str, float]) -> dict[int, str | None]:
    """Each goes to the worker with the most room (`incremental`, section 5), of several to the first."""
    left, assignment = dict(room), dict[int, str | None]()
    for number in partitions:
        worker = max(left, key=left.__getitem__)
        left[worker] -= 1
        assignment[number] = worker
    return assignment


def assigned_by_cost(
    partitions: Iterable[int], room: Mapping[str, float], costs: Costs
) -> dict[int, str | None] | None:
    """The same, the dearest first; None if one is left that no worker has room for."""
    left, assignment = dict(room), dict[int, str | None]()
    for number in sorted(partitions, key=lambda each: -costs[each]):
        worker = max(left, key=left.__getitem__)
        if costs[number] > left[worker] * (1 + ROUNDING):
            return None
        left[worker] -= costs[number]
        assignment[number] = worker
    return assignment
