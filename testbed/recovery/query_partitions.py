"""The queries of a dataflow, and which partitions must be restored so that a query has output again.

Source: `incremental`, definition 1. A query is named by its output partition, which is a partition of a sink. It is
made of this partition and of all that are upstream of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from testbed.core.dataflow.layout import Layout
from testbed.operators import Sink

if TYPE_CHECKING:
    from models.recovery.problem import RecoveryProblem

DEFAULT_PRIORITY = 1.0


def needs_of(layout: Layout) -> dict[int, frozenset[int]]:
    """Each partition with all that are upstream of it."""
    needs: dict[int, frozenset[int]] = {}

    def needed(number: int) -> frozenset[int]:
        if number not in needs:
            senders = (needed(channel.sender) for channel in layout.partitions[number].inputs)
            needs[number] = frozenset({number}).union(*senders)
        return needs[number]

    return {each.number: needed(each.number) for each in layout.partitions}


def queries_of(layout: Layout) -> dict[str, frozenset[int]]:
    """The partitions of each query, by the name of its output partition."""
    needs = needs_of(layout)
    return {each.name: needs[each.number] for each in layout.partitions if isinstance(each.element, Sink)}


def problem_of(
    layout: Layout,
    failed: Collection[int],
    capacity: float,
    priorities: Mapping[str, float],
    costs: Mapping[int, float] | None = None,
) -> RecoveryProblem:
    """Which of the failed partitions to restore, as a problem for the planners.

    costs        of partitions, in the unit of the capacity; by default each costs 1
    priorities   of queries by the name of their sink or of their output partition; of the others, 1
    """
    from scipy import sparse  # here, since slots wait for what they import

    from models.recovery.problem import RecoveryProblem

    mask = np.zeros(len(layout.partitions), dtype=bool)
    mask[list(failed)] = True
    position = np.cumsum(mask) - 1
    hit = {name: of.intersection(failed) for name, of in queries_of(layout).items() if not of.isdisjoint(failed)}
    rows = np.repeat(np.arange(len(hit)), [len(of) for of in hit.values()])
    columns = np.array([position[number] for of in hit.values() for number in sorted(of)], dtype=int)
    ends = np.array([(channel.sender, channel.receiver) for channel in layout.channels]).T
    shape = (len(layout.partitions),) * 2
    return RecoveryProblem(
        failed=mask,
        queries=tuple(hit),
        needs=sparse.csr_array((np.ones(rows.size), (rows, columns)), (len(hit), len(failed))),
        costs=np.array([1.0 if costs is None else costs[number] for number in np.flatnonzero(mask).tolist()]),
        priorities=np.array([priority_of(name, priorities) for name in hit], dtype=float),
        feeds=sparse.csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape),
        capacity=capacity,
    )


def priority_of(query: str, priorities: Mapping[str, float]) -> float:
    """The priority of a query that is given by the name of its output partition, or of the sink that this is of."""
    return priorities.get(query, priorities.get(query.rpartition(".")[0], DEFAULT_PRIORITY))
