"""The highest output fidelity within a budget, by elimination of the shared nodes of the fidelity expression.

Every node's value is monotone in what its parts are worth, and what is spent on the parts is disjoint but for shared
nodes. So the best of a node at every spending follows from that of its parts, by trying every split, for any fixed
spending on the shared nodes: the nested choices are exact, also for joins, whose values are products.

A frontier has an axis for every shared node below it that is also used elsewhere. Where they would be too many,
a shared node is *relaxed*: within a range of spendings, its users get what the upper end buys for the price of the
lower end. That bounds the optimum from above; it is exact once nothing within the range is worthwhile.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from models.replication.fidelity_expression import ExpressionNode, NodeKind
from models.replication.frontiers import (
    Frontier,
    Operation,
    Shared,
    axis_widths,
    cells,
    chosen_tasks,
    closed,
    combined,
    fixed,
    gated,
    leaf,
    opened,
    worthwhile,
)

MOST_CELLS = 200_000  # of one frontier: a fraction of a second to fill; fewer, more often bounded, proved most

Range = tuple[int, int]  # least and most spent on a shared node
Part = tuple[int, float]  # a node and its weight


class TooWide(Exception):
    """A frontier would have too many cells; `axis` is the shared node whose axis would save the most."""

    def __init__(self, axis: int) -> None:
        super().__init__(axis)
        self.axis = axis


class OutOfTime(Exception):
    """The deadline came before the solution; nothing is proved."""


class Solution(NamedTuple):
    """What elimination found.

    value   no plan within the budget and the ranges has a higher output fidelity
    tasks   a plan that reaches it if nothing is loose; else it may exceed the budget and fall short of the value
    loose   the relaxed nodes that are not exact, with the worthwhile spendings within their ranges
    """

    value: float
    tasks: list[int]
    loose: dict[int, list[int]]


class Elimination:
    """Solves one expression and budget for any ranges of its shared nodes; keeps what no range changes.

    `deadline_s` is on the clock of `time.monotonic`; from then on `solve` raises `OutOfTime`, within milliseconds.
    """

    def __init__(
        self, nodes: Sequence[ExpressionNode], budget: int, most_cells: int = MOST_CELLS, deadline_s: float = math.inf
    ) -> None:
        self._nodes, self._budget, self._most_cells, self._deadline_s = nodes, budget, most_cells, deadline_s
        self._graph = _SharedNodes(nodes)
        self._kept: dict[int, Frontier] = {}

    def solve(self, ranges: Mapping[int, Range]) -> Solution | None:
        """The optimum with the nodes of `ranges` relaxed; None if these cost more than the budget.

        Raises `TooWide` where a node more has to be relaxed, and `OutOfTime`.
        """
        left = self._budget - sum(least for least, _ in ranges.values())
        if left < 0:
            return None
        found = self._frontiers(ranges)
        also = {node: (found[node], most) for node, (_, most) in ranges.items()}
        within = {node: worthwhile(found[node]) for node in ranges}
        loose = {node: costs[(costs > ranges[node][0]) & (costs <= ranges[node][1])] for node, costs in within.items()}
        top = found[len(self._nodes) - 1]
        value = float(top.values[min(left, top.values.size - 1)])
        return Solution(
            value, chosen_tasks(top, left, also), {node: costs.tolist() for node, costs in loose.items() if costs.size}
        )

    def is_below(self, shared: int, node: int) -> bool:
        """Whether a node is worth something through a shared one."""
        return bool(self._graph.below[node] >> shared & 1)

    def _frontiers(self, ranges: Mapping[int, Range]) -> dict[int, Frontier]:
        """The frontier of every node that is not merged into another sum."""
        relaxed = sum(1 << node for node in ranges)
        found: dict[int, Frontier] = {}
        shared: dict[int, Shared] = {}
        for number, parts in self._graph.parts.items():
            self._require_time()
            if number in self._kept and not self._graph.below[number] & relaxed:
                found[number] = self._kept[number]
            else:
                seen = [(self._seen(part, use, found, shared, ranges), weight) for part, use, weight in parts]
                found[number] = self._frontier(self._nodes[number], seen, shared)
                if not self._graph.below[number] & relaxed:
                    self._kept[number] = found[number]
            if number in self._graph.required:
                shared[number] = Shared(found[number], worthwhile(found[number]))
        return found

    def _seen(
        self,
        part: int,
        use: int,
        found: Mapping[int, Frontier],
        shared: Mapping[int, Shared],
        ranges: Mapping[int, Range],
    ) -> Frontier:
        if part in ranges:
            return fixed(found[part], ranges[part][1], use)
        return opened(part, shared[part], use) if part in shared else found[part]

    def _frontier(
        self, node: ExpressionNode, parts: list[tuple[Frontier, float]], shared: Mapping[int, Shared]
    ) -> Frontier:
        match node.kind:
            case NodeKind.RANKED:
                return leaf(node.tasks, node.weights, self._budget)
            case NodeKind.TASK if not parts:
                return leaf(node.tasks, (1.0,), self._budget)
            case NodeKind.TASK:
                return gated(node.tasks[0], parts[0][0], self._budget)
            case NodeKind.SUM:
                return self._fold(np.add, parts, shared)
            case NodeKind.PRODUCT:
                return self._fold(np.multiply, parts, shared)

    def _fold(
        self, operation: Operation, parts: list[tuple[Frontier, float]], shared: Mapping[int, Shared]
    ) -> Frontier:
        """Combines parts one by one, next the one that makes the smallest frontier of those with a common axis."""
        total, *rest = parts
        while rest:
            akin = [i for i, (part, _) in enumerate(rest) if not total[0].axes or {*part.axes} & {*total[0].axes}]
            part = rest.pop(min(akin, key=lambda i: cells(total[0], rest[i][0], self._budget)) if akin else 0)
            self._require_fit(total[0], part[0])
            total = self._close(combined(operation, total, part, self._budget, self._require_time), shared), 1.0
        return total[0]

    def _require_time(self) -> None:
        if time.monotonic() >= self._deadline_s:
            raise OutOfTime

    def _require_fit(self, left: Frontier, right: Frontier) -> None:
        widths = axis_widths(left) | axis_widths(right)
        if widths and cells(left, right, self._budget) > self._most_cells:
            raise TooWide(max(widths, key=lambda axis: widths[axis]))

    def _close(self, frontier: Frontier, shared: Mapping[int, Shared]) -> Frontier:
        """Closes what has all of its uses here; a node after those that are worth something through it."""
        for axis in reversed(frontier.axes):
            if self._graph.required[axis] & ~frontier.covered == 0:
                frontier = closed(axis, frontier, shared[axis], self._budget, self._require_time)
        return frontier


class _SharedNodes:
    """Which nodes of an expression are shared, and when all of their uses have come together.

    parts     of every node that is not merged into the only sum that uses it: (node, bit of its use or 0, weight)
    below     the shared nodes that a node depends on, a bit for each
    required  for each shared node the uses that have to come together before it can be decided: its own, and those
              of the shared nodes that are worth something through it, unless it is decided within them
    """

    def __init__(self, nodes: Sequence[ExpressionNode]) -> None:
        self._nodes = nodes
        self._times_used = np.bincount([part for node in nodes for part in node.parts], minlength=len(nodes))
        merged = {
            part for node in nodes if node.kind is NodeKind.SUM for part in node.parts if self._is_mergeable(part)
        }
        self.parts: dict[int, list[tuple[int, int, float]]] = {}
        self.below: dict[int, int] = {}
        self._covered: dict[int, int] = {}
        self._own_uses: dict[int, int] = {}
        self._uses = 0
        for number in range(len(nodes)):
            if number not in merged:
                self._add(number)
        self.required = self._all_required()

    def _is_mergeable(self, node: int) -> bool:
        return self._nodes[node].kind is NodeKind.SUM and self._times_used[node] == 1

    def _add(self, number: int) -> None:
        parts = [(part, self._new_use(part), weight) for part, weight in self._flat(number)]
        self.parts[number] = parts
        self.below[number] = self._covered[number] = 0
        for part, use, _ in parts:
            self.below[number] |= self.below[part] | (1 << part if use else 0)
            self._covered[number] |= self._covered[part] | use

    def _flat(self, number: int) -> list[Part]:
        """The parts of a node with their weights; a sum that is used only in a sum is replaced by its parts."""
        node = self._nodes[number]
        if node.kind is not NodeKind.SUM:
            return [(part, 1.0) for part in node.parts]
        found: list[Part] = []
        for part, weight in zip(node.parts, node.weights, strict=True):
            inner = self._flat(part) if self._is_mergeable(part) else [(part, 1.0)]
            found += [(leaf_part, leaf_weight * weight) for leaf_part, leaf_weight in inner]
        return found

    def _new_use(self, part: int) -> int:
        if self._times_used[part] == 1:
            return 0
        use = 1 << self._uses
        self._uses += 1
        self._own_uses[part] = self._own_uses.get(part, 0) | use
        return use

    def _all_required(self) -> dict[int, int]:
        required = dict(self._own_uses)
        for later in sorted(self._own_uses):
            for node in _bits(self.below[later]):
                if required[node] & ~self._covered[later]:
                    required[node] |= self._own_uses[later]
        return required


def _bits(mask: int) -> Iterator[int]:
    """The places of the ones, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
