"""The paper's optimal planner: dynamic programming over candidate plans.

Source: `incremental`, appendix B, algorithm 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.recovery.problem import Floats, RecoveryPlan, RecoveryProblem, require_at_most

MOST_QUERIES = 20
WORD = 64


class _Candidates(NamedTuple):
    """Candidate plans: queries and partitions as bits, (plans,) and (plans, words); cost and priority, (plans,)."""

    queries: npt.NDArray[np.uint64]
    partitions: npt.NDArray[np.uint64]
    cost: Floats
    priority: Floats

    def at(self, plans: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> _Candidates:
        return _Candidates(self.queries[plans], self.partitions[plans], self.cost[plans], self.priority[plans])


def dynamic_programming(problem: RecoveryProblem) -> RecoveryPlan:
    """The plan of highest priority, of at most 20 failed queries; raises `BadInput` naming `exact` for more.

    Algorithm 4 raises the usage unit by unit and extends every candidate plan by every query that costs just the
    difference, which enumerates all plans that fit, some in many orders. Here the queries are decided one by one, for
    costs that need not be units, and plans that differ only in partitions that no later query needs are merged: of
    them a plan survives unless another one costs no more and is worth no less. In the worst case that is still
    2^queries plans, as in the paper. Not taken over from the print: QT starts as an intersection with the empty set
    (a union is meant), a query that costs nothing is never added, and a plan that cannot be extended any more is
    removed from the set from which the best plan is returned at the end.
    """
    require_at_most(problem, MOST_QUERIES)
    count = len(problem.queries)
    needs = problem.needs.toarray() > 0
    plans = _Candidates(np.zeros(1, np.uint64), _bits(np.zeros((1, needs.shape[1]), bool)), np.zeros(1), np.zeros(1))
    for query in range(count):
        extended = _extended(plans, problem, needs, query)
        both = _Candidates(*(np.concatenate(pair) for pair in zip(plans, extended, strict=True)))
        later = _bits(needs[query + 1 :].any(axis=0)[None, :])
        plans = both.at(_undominated(both, later))
    best = plans.queries[np.lexsort((plans.cost, -plans.priority))[0]]
    recovered = (best >> np.arange(count, dtype=np.uint64)) & np.uint64(1) > 0
    return problem.plan(problem.union(recovered), optimal=True)


def _extended(plans: _Candidates, problem: RecoveryProblem, needs: npt.NDArray[np.bool_], query: int) -> _Candidates:
    """Every plan with one more query, where that fits."""
    cost = plans.cost.copy()
    for partition in np.flatnonzero(needs[query]):
        held = (plans.partitions[:, partition // WORD] >> np.uint64(partition % WORD)) & np.uint64(1) > 0
        cost += np.where(held, 0.0, problem.costs[partition])
    extended = _Candidates(
        plans.queries | np.uint64(1 << query),
        plans.partitions | _bits(needs[query][None, :]),
        cost,
        plans.priority + problem.priorities[query],
    )
    return extended.at(cost <= problem.limit)


def _undominated(plans: _Candidates, later: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
    """The plans that no other one with the same partitions among the `later` ones beats in cost and in priority."""
    held = plans.partitions & later
    order = np.lexsort((-plans.priority, plans.cost, *held.T))
    held = held[order]
    group = np.cumsum(np.r_[False, (held[1:] != held[:-1]).any(axis=1)])
    _, rank = np.unique(plans.priority, return_inverse=True)
    level = group * order.size + rank[order]  # any plan of a group is above all of the groups before it
    return order[level > np.r_[-1, np.maximum.accumulate(level)[:-1]]]


def _bits(masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Boolean rows as rows of words, the first column in the lowest bit."""
    words = max(-(-masks.shape[1] // WORD), 1)
    padded = np.zeros((masks.shape[0], words * WORD), dtype=bool)
    padded[:, : masks.shape[1]] = masks
    return np.packbits(padded, axis=1, bitorder="little").view(np.dtype("<u8"))
