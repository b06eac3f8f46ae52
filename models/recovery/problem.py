"""The problem of recovery scheduling, and what every planner returns.

Source: `incremental`, definition 1 (query partitions), definition 2 and eq. 1 (recovery scheduling). A query is named
by its output partition: a task of a sink of the topology. It has failed if one of its partitions has; it is recovered
when all of its failed partitions are. Only failed partitions cost.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from experiments.errors import BadInput
from models.inputs import require
from models.topology import Partitioning, Topology, TopologyStream

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

ROUNDING = 1e-9  # relative: costs 0.1 and 0.2 fit a capacity of 0.3, although their sum in binary is larger


class RecoveryPlan(NamedTuple):
    """The failed partitions to recover, and what that brings.

    partitions  boolean vector over the topology's tasks
    queries     the output partitions of all failed queries that the partitions complete
    priority    the sum of the priorities of these queries
    optimal     proved to reach the highest priority that fits; False is "not proved"
    """

    partitions: Mask
    queries: tuple[str, ...]
    priority: float
    optimal: bool


@dataclass(frozen=True, eq=False)
class RecoveryProblem:
    """Failed queries over failed partitions.

    failed      boolean vector over the tasks of the topology
    queries     the names of the failed queries, in the order of the tasks
    needs       (queries, failed partitions), 1 where a query needs a partition
    costs       what each failed partition consumes, in the unit of `capacity` (the paper: CPU)
    priorities  of the failed queries
    feeds       (nodes, nodes), 1 where the row sends to the column; the first nodes are the tasks, the others stand
                between the two sides of a stream with full partitioning
    capacity    what is available for recovery
    """

    failed: Mask
    queries: tuple[str, ...]
    needs: sparse.csr_array
    costs: Floats
    priorities: Floats
    feeds: sparse.csr_array
    capacity: float

    @cached_property
    def limit(self) -> float:
        """The capacity and a rounding error, finite: what the cost of a plan is compared with."""
        return min(self.capacity * (1 + ROUNDING), sys.float_info.max)

    @cached_property
    def shares(self) -> npt.NDArray[np.int64]:
        """f_k: how many failed queries share each failed partition."""
        return self.needs.sum(axis=0).astype(np.int64)

    def cost(self, chosen: Mask) -> float:
        """What a set of failed partitions, a vector over them, consumes."""
        return float(self.costs[chosen].sum())

    def recovered(self, chosen: Mask) -> Mask:
        """The failed queries that a set of failed partitions completes."""
        return self.needs @ (~chosen).astype(float) == 0

    def union(self, queries: Mask) -> Mask:
        """The failed partitions that a set of failed queries needs."""
        return self.needs.T @ queries.astype(float) > 0

    def plan(self, chosen: Mask, optimal: bool) -> RecoveryPlan:
        """The plan that recovers a set of failed partitions."""
        partitions = np.zeros_like(self.failed)
        partitions[np.flatnonzero(self.failed)[chosen]] = True
        found = self.recovered(chosen)
        names = tuple(self.queries[i] for i in np.flatnonzero(found))
        return RecoveryPlan(partitions, names, float(self.priorities[found].sum()), optimal)

    def with_capacity(self, capacity: float) -> RecoveryProblem:
        """The same failure with another capacity; raises `BadInput` unless that is a finite amount of 0 or more."""
        require_capacity(capacity)
        return replace(self, capacity=float(capacity))

    def only(self, queries: Mask) -> RecoveryProblem:
        """The same failure without the other queries, and without the partitions that only those need."""
        needed, failed = self.union(queries), self.failed.copy()
        failed[np.flatnonzero(self.failed)[~needed]] = False
        return replace(
            self,
            failed=failed,
            queries=tuple(self.queries[i] for i in np.flatnonzero(queries)),
            needs=self.needs[queries][:, needed],
            costs=self.costs[needed],
            priorities=self.priorities[queries],
        )

    def after(self, plan: RecoveryPlan) -> RecoveryProblem:
        """What is still failed after a plan, with the capacity that the plan leaves."""
        left = ~plan.partitions[self.failed]
        still = ~self.recovered(~left)
        return replace(
            self,
            failed=self.failed & ~plan.partitions,
            queries=tuple(self.queries[i] for i in np.flatnonzero(still)),
            needs=self.needs[still][:, left],
            costs=self.costs[left],
            priorities=self.priorities[still],
            capacity=max(self.capacity - self.cost(~left), 0.0),
        )


def recovery_problem(
    topology: Topology, failed: Iterable[str] | Mask | Literal["all"], capacity: float
) -> RecoveryProblem:
    """The problem of a topology, its failed tasks (names, a vector over the tasks, or "all") and the capacity.

    Raises `BadInput` for an unknown task, for a vector that is not boolean or not of one element for each task, for
    another string, and for a capacity that is not a finite amount of 0 or more.
    """
    require_capacity(capacity)
    mask = _failed(topology, failed)
    outputs = _outputs(topology)
    serves = _serves(topology, outputs)[mask]
    hit = serves.sum(axis=0) > 0
    return RecoveryProblem(
        failed=mask,
        queries=tuple(topology.tasks[i] for i in outputs[hit]),
        needs=serves[:, hit].T.tocsr(),
        costs=topology.values("costs")[mask],
        priorities=topology.values("priorities")[outputs[hit]],
        feeds=_feeds(topology),
        capacity=float(capacity),
    )


def require_at_most(problem: RecoveryProblem, queries: int) -> None:
    """Raise `BadInput` for more failed queries than a planner can finish, naming one that has no limit."""
    if (count := len(problem.queries)) > queries:
        raise BadInput("failed", f"{count} failed queries", f"at most {queries} (algorithm exact has no limit)")


def require_capacity(capacity: float, field: str = "capacity") -> None:
    """Raise `BadInput` unless the capacity is a finite amount of 0 or more."""
    require(field, capacity, capacity >= 0, "a finite amount of 0 or more")


def _failed(topology: Topology, failed: Iterable[str] | Mask | Literal["all"]) -> Mask:
    if isinstance(failed, np.ndarray):
        if failed.dtype != bool or failed.shape != (len(topology.tasks),):
            found = f"a vector of type {failed.dtype} and shape {failed.shape}"
            raise BadInput("failed", found, f"a boolean vector over the {len(topology.tasks)} tasks")
        return failed.copy()
    if isinstance(failed, str):
        if failed != "all":
            raise BadInput("failed", failed, 'names of tasks, one by one, a boolean vector, or "all"')
        failed = topology.tasks
    return topology.mask(failed, "failed")


def _outputs(topology: Topology) -> npt.NDArray[np.intp]:
    """The output partitions, as indices over the tasks."""
    spans = [topology.span[operator.name] for operator in topology.sinks]
    return np.concatenate([np.arange(span.start, span.stop) for span in spans])


def _serves(topology: Topology, outputs: npt.NDArray[np.intp]) -> sparse.csr_array:
    """(tasks, output partitions), 1 where the output partition is the task or downstream of it: definition 1."""
    shape = (len(topology.tasks), outputs.size)
    own = sparse.csr_array((np.ones(outputs.size), (outputs, np.arange(outputs.size))), shape)
    reach: dict[str, sparse.csr_array] = {}
    for operator in reversed(topology.operators):
        rows = own[topology.span[operator.name]]
        for stream in topology.outputs_of[operator.name]:
            rows = rows + _through(topology, stream, reach[stream.target])
        rows.data[:] = 1.0
        reach[operator.name] = rows
    return sparse.vstack([reach[operator.name] for operator in topology.operators], format="csr")


def _through(topology: Topology, stream: TopologyStream, below: sparse.csr_array) -> sparse.csr_array:
    """What the upstream tasks of a stream serve through it, given what its downstream tasks serve."""
    up, down = topology.span[stream.source], topology.span[stream.target]
    if stream.partitioning is Partitioning.FULL:  # the same for all tasks
        served = sparse.csr_array(below.sum(axis=0)[None, :])
        return sparse.vstack([served] * (up.stop - up.start), format="csr")
    sources, targets = topology.links(stream)
    ends = (sources - up.start, targets - down.start)
    return sparse.csr_array((np.ones(sources.size), ends), (up.stop - up.start, below.shape[0])) @ below


def _feeds(topology: Topology) -> sparse.csr_array:
    """Who sends to whom; a stream with full partitioning becomes a node that all send to and all receive from."""
    nodes, senders, receivers = len(topology.tasks), [], []
    for stream in topology.streams:
        if stream.partitioning is not Partitioning.FULL:
            sources, targets = topology.links(stream)
            senders.append(sources)
            receivers.append(targets)
            continue
        up, down = (np.arange(s.start, s.stop) for s in (topology.span[stream.source], topology.span[stream.target]))
        senders.extend([up, np.full(down.size, nodes)])
        receivers.extend([np.full(up.size, nodes), down])
        nodes += 1
    ends = (np.concatenate([*senders, np.empty(0, int)]), np.concatenate([*receivers, np.empty(0, int)]))
    return sparse.csr_array((np.ones(ends[0].size), ends), (nodes, nodes))
