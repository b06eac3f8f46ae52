"""Incremental recovery after correlated failures: query by query, as workers arrive (`incremental`, section 4.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from experiments.errors import BadInput
from models.recovery.planners import PLANNERS
from testbed.core.recovery import Recovery, World
from testbed.recovery.query_partitions import problem_of

BEST_DENSITY = "best-density"


class QueryCentric(Recovery):
    """At each arrival of a worker, those lost partitions go back that fit and that complete the best queries.

    A worker takes at most `capacity` partitions. What is restored stays, and what does not fit waits for the next
    worker: if none comes, the queries with the highest priorities are the ones that give output.

    Survivors never roll back. The paper has them roll back once in a burst, because they keep output for others only
    from then on; with batches every partition keeps it at all times.
    """

    name = "query-centric"
    partial = True

    def __init__(
        self,
        capacity: int | None = None,
        planner: str = BEST_DENSITY,
        priorities: Mapping[str, float] | None = None,
    ) -> None:
        """
        capacity     partitions for each worker; by default as many as they need to have all at the start
        planner      one of `models.recovery.planners`
        priorities   of queries by name; of others, 1

        Raises `BadInput`.
        """
        if capacity is not None and capacity < 1:
            raise BadInput("capacity", capacity, "1 or more partitions for each worker")
        if planner not in PLANNERS:
            raise BadInput("planner", planner, ", ".join(PLANNERS))
        self._capacity, self._planner, self._priorities = capacity, PLANNERS[planner], priorities or {}

    def restored_now(self, world: World) -> frozenset[int]:
        return frozenset(self.plan(world))

    def plan(self, world: World) -> dict[int, str | None]:
        """Who goes back, and to which worker."""
        if not world.started and len(world.workers) < world.slots:
            return {}
        # After an object could not be read, those that are alive go back, too: where they are.
        back: dict[int, str | None] = {number: world.hosts[number] for number in world.down & world.hosts.keys()}
        lost = sorted(world.down - world.hosts.keys())
        room = self._room(world)
        if not lost or not sum(room.values()):
            return back
        problem = problem_of(world.layout, lost, float(sum(room.values())), self._priorities)
        chosen = np.flatnonzero(self._planner(problem).partitions).tolist()
        return back | self._seated(chosen, room)

    def _room(self, world: World) -> Counter[str]:
        """How many more partitions each worker can take."""
        capacity = self._capacity or -(-world.partitions // world.slots)
        room = Counter(dict.fromkeys(sorted(world.workers), capacity))
        room.subtract(world.hosts.values())
        return room

    def _seated(self, partitions: list[int], room: Counter[str]) -> dict[int, str | None]:
        """Each goes to the worker with the most room (section 5), of several to the first by name."""
        seats: dict[int, str | None] = {}
        for number in partitions:
            worker = max(room, key=room.__getitem__)
            room[worker] -= 1
            seats[number] = worker
        return seats
