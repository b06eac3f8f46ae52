"""Incremental recovery after correlated failures: query by query, as workers arrive (`incremental`, section 4.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from experiments.errors import BadInput
from models.recovery.density_beam import density_beam
from models.recovery.exact import exact
from models.recovery.planners import PLANNERS
from models.recovery.problem import RecoveryPlan, RecoveryProblem
from testbed.core.recovery import Recovery, World
from testbed.recovery.query_partitions import problem_of
from testbed.recovery.seating import room_of, seated

BEST_DENSITY, EXACT, FALLBACK = "best-density", "exact", "density-beam"
PLANNING_S = 1.0  # slots that hear nothing for longer would be given up


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
        limit_s: float = PLANNING_S,
    ) -> None:
        """
        capacity     partitions for each worker; by default as many as they need to have all at the start
        planner      one of `models.recovery.planners`
        priorities   of queries by name; of others, 1
        limit_s      after so long planner `exact` stops to look for a better plan

        Raises `BadInput`.
        """
        if capacity is not None and capacity < 1:
            raise BadInput("capacity", capacity, "1 or more partitions for each worker")
        if planner not in PLANNERS:
            raise BadInput("planner", planner, ", ".join(PLANNERS))
        if limit_s <= 0:
            raise BadInput("planner_limit_s", limit_s, "more than 0")
        self._capacity, self._planner, self._limit_s, self.priorities = capacity, planner, limit_s, priorities or {}
        self._notes: list[str] = []

    def take_notes(self) -> list[str]:
        """One line for each plan since the last call that the planner left to another."""
        notes, self._notes = self._notes, []
        return notes

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
        problem = problem_of(world.layout, lost, float(sum(room.values())), self.priorities)
        chosen = np.flatnonzero(self._plan(problem).partitions).tolist()
        return back | seated(chosen, room)

    def _plan(self, problem: RecoveryProblem) -> RecoveryPlan:
        """The planner's plan; where it refuses, or has no proof in time, a quick planner plans as well."""
        try:
            plan = exact(problem, self._limit_s) if self._planner == EXACT else PLANNERS[self._planner](problem)
        except BadInput as refusal:
            self._notes.append(f"planner {FALLBACK} instead of {self._planner}: {refusal.value}, {refusal.allowed}")
            return density_beam(problem)
        if self._planner != EXACT or plan.optimal:
            return plan
        why = f"no proof within {self._limit_s:g} s"
        self._notes.append(f"the better plan of {self._planner} and {FALLBACK}: {self._planner} had {why}")
        return max(plan, density_beam(problem), key=lambda each: each.priority)

    def _room(self, world: World) -> Counter[str]:
        """How many more partitions each worker can take."""
        return room_of(world, self._capacity)
