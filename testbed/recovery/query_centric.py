"""Incremental recovery after correlated failures: query by query, as workers arrive (`incremental`, section 4.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from experiments.errors import BadInput
from testbed.core.recovery import RecoveryStrategy, World
from testbed.recovery.assignment import Costs, even_share, room_of
from testbed.recovery.query_partitions import problem_of

if TYPE_CHECKING:
    from models.recovery.problem import RecoveryPlan, RecoveryProblem

BEST_DENSITY = "best-density"
LEAST_COST = 1e-3  # cores: also what has nothing to do just now takes some
# While it plans, the coordinator's server hears no slot and sends no orders.
PLANNING_S = 1.0


class QueryCentric(RecoveryStrategy):
    """At each arrival of a worker, those lost partitions roll back that fit and that complete the best queries.

    A worker takes at most `capacity` partitions, or partitions that together need at most `cores` of its cores.
    Restored partitions stay where they are, and partitions that do not fit wait for the next worker. If none comes, the
    queries with the highest total priority have output.

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
        cores: float | None = None,
    ) -> None:
        """
        capacity     partitions for each worker; by default as many as they need to have all at the start
        planner      one of `models.recovery.planners`
        priorities   of queries by name; of others, 1
        cores        what partitions may take of each worker, which is then what they cost; by default each costs 1
        limit_s      after so long, in each call of `plan`, `exact` and `best-density` stop to look for a better plan

        Raises `BadInput`.
        """
        if capacity is not None and capacity < 1:
            raise BadInput("capacity", capacity, "1 or more partitions for each worker")
        from models.recovery.planners import PLANNERS  # here, since slots wait for what they import

        if planner not in PLANNERS:
            raise BadInput("planner", planner, ", ".join(PLANNERS))
        if limit_s <= 0:
            raise BadInput("planner_limit_s", limit_s, "more than 0")
        if cores is not None and cores <= 0:
            raise BadInput("cpu_limit", cores, "more than 0")
        self._capacity, self._planner, self._limit_s, self.priorities = capacity, planner, limit_s, priorities or {}
        self.cores = cores
        self._notes: list[str] = []
        self._noted: set[str] = set()
        self.measured: Costs = {}  # the cores that partitions use, by their numbers; the owner sets measured values
        self.used: Costs = {}  # those by which it planned last

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
        if not lost or not any(each > 0 for each in room.values()):
            return back
        return back | self._restored(world, lost, room)

    def _restored(self, world: World, lost: list[int], room: Mapping[str, float]) -> dict[int, str | None]:
        """What is planned, and where it fits. A plan may not fit, so there may be several, but no other is made once
        `limit_s` is over."""
        from models.recovery.within_limits import plan_within, time_left
        from testbed.recovery.packing import packed

        left_s = time_left(self._limit_s)
        costs = self._costs_in(world) or dict.fromkeys(range(world.partitions), 1.0)
        capacity = math.fsum(each for each in room.values() if each > 0)

        def planner(problem: RecoveryProblem) -> RecoveryPlan:
            plan, notes = plan_within(problem, self._planner, left_s())
            self._notes.extend(notes)
            return plan

        return packed(problem_of(world.layout, lost, capacity, self.priorities, costs), room, costs, planner, left_s)

    def _room(self, world: World) -> dict[str, float]:
        """How much more each worker can take: partitions, or cores if costs are measured."""
        costs = self._costs_in(world)
        if costs is None:
            return room_of(world, self._capacity or even_share(world))
        return room_of(world, cast(float, self.cores), costs)

    def _costs_in(self, world: World) -> Costs | None:
        """The cores that each partition takes; None before any is measured, and if each is to cost the same."""
        if self.cores is None or not self.measured:
            return None
        usual = max(math.fsum(self.measured.values()) / len(self.measured), LEAST_COST)
        known = {number: self.measured.get(number, usual) for number in range(world.partitions)}
        for number, cost in known.items():
            if cost > self.cores:
                name = world.layout.partitions[number].name
                self._note(f"{name} takes {cost:.2g} cores and a slot may take {self.cores:g}: it has one to itself")
        self.used = {number: min(max(cost, LEAST_COST), self.cores) for number, cost in known.items()}
        return self.used

    def _note(self, line: str) -> None:
        if line not in self._noted:
            self._noted.add(line)
            self._notes.append(line)
