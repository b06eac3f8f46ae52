"""The operator-centric baseline: partitions one by one in topological order, without regard to queries.

Source: `incremental`, sections 2.2.3 and 7.3 (OC).
"""

from __future__ import annotations

import heapq

import numpy as np

from models.recovery.problem import RecoveryPlan, RecoveryProblem


def operator_centric(problem: RecoveryProblem) -> RecoveryPlan:
    """Recover, while it fits, the cheapest failed partition of those that wait for no other one.

    A partition is ready when everything upstream of it is alive or recovered; of partitions equally cheap the first
    in the order of the tasks goes first. Section 7.3 takes the cheapest "in topological order", which could also mean
    operator by operator. Being ready is all that the order asks for, and the paper's own reason for OC's loss is
    that it takes a cheap partition where another one would complete a query: both have to be candidates at that
    time. With equal costs the two readings are the same, and the example of figure 2 comes out as printed.
    """
    tasks = problem.failed.size
    costs = np.zeros(problem.feeds.shape[0])
    costs[:tasks][problem.failed] = problem.costs
    chosen = np.zeros(tasks, dtype=bool)
    waits_for = problem.feeds.sum(axis=0).astype(int)
    ready = [(costs[node], int(node)) for node in np.flatnonzero(waits_for == 0)]
    heapq.heapify(ready)
    used = 0.0
    while ready:
        cost, node = heapq.heappop(ready)
        used += cost
        if used > problem.limit:
            break
        if node < tasks:
            chosen[node] = problem.failed[node]
        for below in problem.feeds.indices[problem.feeds.indptr[node] : problem.feeds.indptr[node + 1]]:
            waits_for[below] -= 1
            if waits_for[below] == 0:
                heapq.heappush(ready, (costs[below], int(below)))
    return problem.plan(chosen[problem.failed], optimal=False)
