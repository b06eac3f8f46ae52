"""The whole incremental recovery: nodes arrive one by one, and every arrival brings a partial plan.

Source: `incremental`, sections 2.2.3, 2.3 and 4.4 (figure 2, figure 6); blocking recovery is that of section 7.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.inputs import require, require_time
from models.recovery.problem import RecoveryPlan, RecoveryProblem, require_capacity

Planner = Callable[[RecoveryProblem], RecoveryPlan]


class Arrival(NamedTuple):
    """A node that becomes available: when [s], and how much it can recover, in the unit of the costs."""

    at_s: float
    capacity: float


class Step(NamedTuple):
    """What is recovered when a node arrives; the plan's priority and queries are those that this step completes."""

    at_s: float
    plan: RecoveryPlan


@dataclass(frozen=True)
class RecoverySchedule:
    """The steps in the order of time, and the priority of every failed query by its name."""

    steps: tuple[Step, ...]
    priorities: dict[str, float]

    @property
    def recovered_at_s(self) -> dict[str, float]:
        """When each failed query is recovered [s]; inf if it never is."""
        times = dict.fromkeys(self.priorities, math.inf)
        return times | {query: step.at_s for step in self.steps for query in step.plan.queries}

    def available(self, at_s: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The sum of the priorities of the failed queries that are recovered at some times [s], in their shape."""
        times = np.array([step.at_s for step in self.steps])
        totals = np.cumsum([0.0, *(step.plan.priority for step in self.steps)])
        return totals[np.searchsorted(times, np.asarray(at_s, dtype=float), side="right")]


def incremental_schedule(problem: RecoveryProblem, arrivals: Iterable[Arrival], planner: Planner) -> RecoverySchedule:
    """Make a new plan at every arrival for what is still failed; a query counts as recovered when its plan starts.

    The first step is at time 0 and has the problem's own capacity: what the nodes that are alive can take. Capacity
    that a plan leaves unused is carried over, as its node is still there. Figure 2 rather spends it at once on
    partitions of the query that comes next; no query is recovered earlier by that. Raises `BadInput` for a time or a
    capacity below 0 or not finite, and for capacities whose sum is not finite.
    """
    steps, left = [], problem
    for arrival in [Arrival(0.0, 0.0), *_in_order(problem, arrivals)]:
        left = left.with_capacity(left.capacity + arrival.capacity)
        plan = planner(left)
        steps.append(Step(arrival.at_s, plan))
        left = left.after(plan)
    return RecoverySchedule(tuple(steps), _priorities(problem))


def blocking_schedule(problem: RecoveryProblem, arrivals: Iterable[Arrival]) -> RecoverySchedule:
    """Everything in one step, when the last node has arrived; nothing if all nodes together are too small.

    Raises `BadInput` for a time or a capacity below 0 or not finite, and for capacities whose sum is not finite.
    """
    ordered = [Arrival(0.0, 0.0), *_in_order(problem, arrivals)]
    whole = problem.with_capacity(_total(problem, ordered))
    everything = np.ones(problem.costs.size, dtype=bool)
    enough = whole.cost(everything) <= whole.limit
    plan = whole.plan(everything & enough, optimal=enough)
    return RecoverySchedule((Step(ordered[-1].at_s, plan),), _priorities(problem))


def _priorities(problem: RecoveryProblem) -> dict[str, float]:
    return dict(zip(problem.queries, problem.priorities.tolist(), strict=True))


def _total(problem: RecoveryProblem, arrivals: Iterable[Arrival]) -> float:
    return problem.capacity + sum(arrival.capacity for arrival in arrivals)  # math.fsum refuses what overflows


def _in_order(problem: RecoveryProblem, arrivals: Iterable[Arrival]) -> list[Arrival]:
    ordered = sorted(arrivals)
    for arrival in ordered:
        require_time("arrivals.at_s", arrival.at_s)
        require_capacity(arrival.capacity, "arrivals.capacity")
    require("arrivals.capacity", _total(problem, ordered), True, "amounts whose sum is finite")
    return ordered
