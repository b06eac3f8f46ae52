"""The replication plan of the highest output fidelity, with the proof that there is no better one.

Beyond the paper, whose dynamic programming (algorithm 1) is exponential in the number of MC-trees: elimination over
tasks rather than trees proves the optimum directly where few nodes of the topology are shared at a time (chains, trees,
full topologies, splits that merge again). The others are searched by branch and bound over what is spent on the nodes
that make it too wide.
"""

from __future__ import annotations

import heapq
import time
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.fidelity import Scorer, worst_case
from models.inputs import require_time
from models.replication.elimination import MOST_CELLS, Elimination, OutOfTime, Range, Solution, TooWide
from models.replication.fidelity_expression import fidelity_expression
from models.replication.plan import require_budget
from models.replication.smallest_tree import smallest_mc_tree
from models.topology import Topology

ROUNDING = 1e-12  # relative; two ways of adding up one output fidelity differ by less
GRACE_S = 0.5
GIVEN_UP_AT_ONCE = 4  # a step drops a quarter of the surplus replicas; then the loss by each one is computed again
MOST_SCORED = 1_000_000  # tasks of plans that are scored between two looks at the clock: some 10 ms

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

    A bound that is not there in time proves nothing. Where there is no plan yet either, the search takes `GRACE_S` more
    for one; on 10,000 tasks and more, what cannot be interrupted can take a few seconds. `most_cells` bounds the
    memory of one frontier (8 bytes a cell). Raises `BadInput` for a negative budget or time limit.
    """
    require_budget(topology, budget)
    require_time("time_limit_s", time_limit_s)
    deadline_s = time.monotonic() + time_limit_s
    return _Search(topology, min(budget, len(topology.tasks)), most_cells, deadline_s).run()


class _Search:
    """Branch and bound, the highest bound first."""

    def __init__(self, topology: Topology, budget: int, most_cells: int, deadline_s: float) -> None:
        self._scorer, self._budget, self._deadline_s = Scorer(topology), budget, deadline_s
        self._elimination = Elimination(fidelity_expression(topology), budget, most_cells, deadline_s)
        self._shares = np.concatenate([np.divide(o.output_rates, sum(o.output_rates)) for o in topology.operators])
        self._best, self._fidelity = np.zeros(len(topology.tasks), dtype=bool), 0.0
        self._settled = 0.0  # the highest bound of what needs no more branching
        self._pending = 1.0  # the bound of what is being bounded
        self._open: list[tuple[float, int, dict[int, Range], Solution]] = []
        self._pushed = 0

    def run(self) -> ExactPlan:
        try:
            self._search()
        except OutOfTime:
            if not self._fidelity:
                self._deadline_s = time.monotonic() + GRACE_S
                self._consider(np.flatnonzero(smallest_mc_tree(self._scorer.topology, self._budget)).tolist())
                self._consider(list(range(self._best.size)))
        bound = self._upper_bound()
        return ExactPlan(self._best, self._is_proved(bound), max(bound, self._fidelity))

    def _search(self) -> None:
        self._bound({})
        self._pending = 0.0
        if self._open:
            self._consider(list(range(self._best.size)))
        while self._open and not self._is_proved(self._upper_bound()):
            bound, _, ranges, solution = heapq.heappop(self._open)
            self._pending = -bound
            self._branch(ranges, solution)
            self._pending = 0.0

    def _upper_bound(self) -> float:
        return max(self._settled, self._pending, -self._open[0][0] if self._open else 0.0)

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
        self._reduce(replicated)
        fidelity = float(self._scorer.output_fidelity(worst_case(replicated)))
        if fidelity > self._fidelity:
            self._best, self._fidelity = replicated, fidelity

    def _reduce(self, replicated: Plan) -> None:
        """Gives up the replicas that are missed least, a few at a time, until the plan is within the budget.

        Out of time, all at once, as they were missed last; and by their shares of their operators' rates if never yet.
        """
        worth = self._shares
        while (excess := int(replicated.sum()) - self._budget) > 0:
            with suppress(OutOfTime):
                worth, excess = self._worth(replicated), -(-excess // GIVEN_UP_AT_ONCE)
            candidates = np.flatnonzero(replicated)
            replicated[candidates[np.argsort(worth[candidates], kind="stable")[:excess]]] = False

    def _worth(self, replicated: Plan) -> npt.NDArray[np.float64]:
        """How much each replica is missed: the output fidelity without it, negated; 0 for the other tasks."""
        worth = np.zeros(replicated.size)
        for tasks in np.array_split(np.flatnonzero(replicated), 1 + replicated.size**2 // MOST_SCORED):
            if time.monotonic() >= self._deadline_s:
                raise OutOfTime
            without = np.repeat(replicated[None], tasks.size, axis=0)
            without[np.arange(tasks.size), tasks] = False
            worth[tasks] = -self._scorer.output_fidelity(worst_case(without))
        return worth
