"""Makes plans of which every partition fits on some worker.

A planner knows only how much all workers can take together. So its plan may contain a partition for which no single
worker has room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from testbed.recovery.assignment import ROUNDING, Costs, assigned_by_cost

if TYPE_CHECKING:
    from models.recovery.problem import Mask, RecoveryPlan, RecoveryProblem

MOST_PLANS = 20  # the coordinator waits while it plans


class Packing:
    """The room of each worker, and the partitions that have been assigned to it so far."""

    def __init__(self, room: Mapping[str, float], costs: Costs) -> None:
        self._room, self._costs = dict(room), costs
        self.assignment: dict[int, str | None] = {}

    def place(self, partitions: Iterable[int]) -> bool:
        """Assign those of these partitions that have no worker yet, all of them or none; returns whether they fit."""
        new = [number for number in partitions if number not in self.assignment]
        found = assigned_by_cost(new, self._room, self._costs)
        if found is None:
            return False
        for number, worker in found.items():
            if worker is not None:
                self._room[worker] -= self._costs[number]
        self.assignment |= found
        return True

    def takes(self, partition: int) -> bool:
        """Whether some worker has room for this partition."""
        return self._costs[partition] <= max(self._room.values()) * (1 + ROUNDING)


def packed(
    problem: RecoveryProblem,
    room: Mapping[str, float],
    costs: Costs,
    planner: Callable[[RecoveryProblem], RecoveryPlan],
    left_s: Callable[[], float],
) -> dict[int, str | None]:
    """The partitions to restore, each with its worker.

    If a plan does not fit as a whole, its queries are placed one by one, and the planner is asked about the rest.
    Queries of a plan that do not fit are left out of the next one, so that they do not hide those that fit. If no plan
    fits, or none of the time is left (`left_s()` [s]), every query that is still down is tried alone at last.
    """
    packing, rest = Packing(room, costs), problem
    for _ in range(MOST_PLANS):
        rest = _possible(rest, packing)
        if not rest.queries:
            break
        plan = planner(rest)
        if packing.place(np.flatnonzero(plan.partitions).tolist()):
            return packing.assignment
        refused = _place_queries(rest, plan, packing)
        if not refused.any() or left_s() <= 0:  # without `any`: a plan without whole queries
            break
        rest = _after(rest.only(~refused), packing)
    _place_alone(problem, packing)
    return packing.assignment


def _possible(problem: RecoveryProblem, packing: Packing) -> RecoveryProblem:
    """Without the queries with a partition that no worker takes."""
    too_dear = np.array([not packing.takes(number) for number in np.flatnonzero(problem.failed).tolist()], dtype=bool)
    return problem.only(problem.needs @ too_dear.astype(float) == 0)


def _place_queries(problem: RecoveryProblem, plan: RecoveryPlan, packing: Packing) -> Mask:
    """Place the plan's queries one by one, then its partitions beyond these; returns the queries that do not fit."""
    chosen, refused = np.isin(problem.queries, plan.queries), np.zeros(len(problem.queries), dtype=bool)
    for query, partitions in _by_density(problem):
        refused[query] = chosen[query] and not packing.place(partitions)
    planned = plan.partitions[problem.failed]
    beyond = planned & ~problem.union(chosen)  # `operator-centric` plans partitions, whatever they complete
    for number in np.flatnonzero(problem.failed)[beyond].tolist():
        packing.place([number])
    return refused


def _place_alone(problem: RecoveryProblem, packing: Packing) -> None:
    """Place each query that fits."""
    for _, partitions in _by_density(problem):
        packing.place(partitions)


def _by_density(problem: RecoveryProblem) -> Iterator[tuple[int, list[int]]]:
    """Each query with its failed partitions, the one with the highest priority for its cost first."""
    numbers = np.flatnonzero(problem.failed)
    density = problem.priorities / (problem.needs @ problem.costs)
    for query in np.argsort(-density, kind="stable").tolist():
        yield query, numbers[problem.needs[[query]].indices].tolist()


def _after(problem: RecoveryProblem, packing: Packing) -> RecoveryProblem:
    """What is still down once the partitions are restored that have been assigned."""
    placed = np.isin(np.flatnonzero(problem.failed), list(packing.assignment))
    return problem.after(problem.plan(placed, optimal=False))
