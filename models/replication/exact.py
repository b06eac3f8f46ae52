"""The replication plan of the highest output fidelity, with the proof that there is no better one.

Beyond the paper, whose dynamic programming (algorithm 1) is exponential in the number of MC-trees: elimination over
tasks rather than trees proves the optimum directly where few nodes of the topology are shared at a time (chains, trees,
full topologies, splits that merge again). The others are searched by branch and bound over what is spent on the nodes
that make it too wide.
"""

from __future__ import annotations

import heapq
import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.fidelity import Scorer, worst_case
from models.inputs import require_time
from models.replication.elimination import MOST_CELLS, Elimination, Range, Solution, TooWide
from models.replication.fidelity_expression import fidelity_expression
from models.replication.plan import require_budget
from models.topology import Topology

ROUNDING = 1e-12  # relative; two ways of adding up one output fidelity differ by less

Plan = npt.NDArray[np.bool_]


class ExactPlan(NamedTuple):
    """A `ReplicationPlan` with what is proved of it.

    replicated   boolean vector over the topology's tasks, true for at most `budget` of them
    optimal      proved to reach the highest output fidelity of the worst case; False is "not within the time limit"
    upper_bound  no plan within the budget has a higher output fidelity
    """

    replicated: Plan
    optimal: bool
    upper_bound: float


def plan(topology: Topology, budget: int, time_limit_s: float = 5.0, most_cells: int = MOST_CELLS) -> ExactPlan:
    """The best plan that could be found, proved optimal unless the time limit stops the search.

    `time_limit_s` is looked at between bounds: one that has been started is finished. `most_cells` bounds the memory
    of one frontier (8 bytes a cell). Raises `BadInput` for a negative budget or time limit.
    """
    require_budget(topology, budget)
    require_time("time_limit_s", time_limit_s)
    budget = min(budget, len(topology.tasks))
    return _Search(topology, budget, most_cells).run(time.monotonic() + time_limit_s)


class _Search:
    """Branch and bound, the highest bound first."""

    def __init__(self, topology: Topology, budget: int, most_cells: int) -> None:
        self._scorer, self._budget = Scorer(topology), budget
        self._elimination = Elimination(fidelity_expression(topology), budget, most_cells)
        self._best, self._fidelity = np.zeros(len(topology.tasks), dtype=bool), 0.0
        self._settled = 0.0  # the highest bound of what needs no more branching
        self._open: list[tuple[float, int, dict[int, Range], Solution]] = []
        self._pushed = 0

    def run(self, deadline: float) -> ExactPlan:
        self._bound({})
        if self._open:
            self._consider(list(range(self._best.size)))
        while self._open and not self._is_proved(self._upper_bound()) and time.monotonic() < deadline:
            _, _, ranges, solution = heapq.heappop(self._open)
            self._branch(ranges, solution)
        bound = self._upper_bound()
        return ExactPlan(self._best, self._is_proved(bound), max(bound, self._fidelity))

    def _upper_bound(self) -> float:
        return max(self._settled, -self._open[0][0]) if self._open else self._settled

    def _is_proved(self, bound: float) -> bool:
        return bound <= self._fidelity * (1.0 + ROUNDING)

    def _branch(self, ranges: dict[int, Range], solution: Solution) -> None:
        """Splits the range of the loose node with the most worthwhile spendings."""
        node = max(solution.loose, key=lambda loose: len(solution.loose[loose]))
        least, most = ranges[node]
        costs = solution.loose[node]
        middle = costs[len(costs) // 2]
        self._bound(ranges | {node: (least, middle - 1)})
        self._bound(ranges | {node: (middle, most)})

    def _bound(self, ranges: dict[int, Range]) -> None:
        solution, ranges = self._solve(ranges)
        if solution is None:
            return
        self._consider(solution.tasks)
        if solution.loose:
            heapq.heappush(self._open, (-solution.value, self._pushed, ranges, solution))
            self._pushed += 1
        else:
            self._settled = max(self._settled, solution.value)

    def _solve(self, ranges: dict[int, Range]) -> tuple[Solution | None, dict[int, Range]]:
        """Relaxes as many nodes more as it takes.

        What is spent on a node leaves out what is spent on the relaxed ones below it. So with one more of them the
        ranges of those above it mean something else, and start again.
        """
        while True:
            try:
                return self._elimination.solve(ranges), ranges
            except TooWide as wide:
                everything = (0, self._budget)
                above = {node for node in ranges if self._elimination.is_below(wide.axis, node)}
                ranges = ranges | dict.fromkeys({*above, wide.axis}, everything)

    def _consider(self, tasks: list[int]) -> None:
        replicated = np.zeros(self._best.size, dtype=bool)
        replicated[tasks] = True
        while replicated.sum() > self._budget:
            self._give_up_one(replicated)
        fidelity = float(self._scorer.output_fidelity(worst_case(replicated)))
        if fidelity > self._fidelity:
            self._best, self._fidelity = replicated, fidelity

    def _give_up_one(self, replicated: Plan) -> None:
        """Gives up the replica that is missed least."""
        candidates = np.flatnonzero(replicated)
        without = np.repeat(replicated[None], candidates.size, axis=0)
        without[np.arange(candidates.size), candidates] = False
        replicated[candidates[np.argmax(self._scorer.output_fidelity(worst_case(without)))]] = False
