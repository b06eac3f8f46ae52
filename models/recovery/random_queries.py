"""Random sets of failed queries that share partitions, as section 7.3 of `incremental` generates them for figure 16.

The paper names what its generator varies (number and size of the queries, distribution of their priorities, sharing)
but gives neither sizes nor costs: the defaults here are ours. Every partition has failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from scipy import sparse

from models.inputs import require, require_count
from models.recovery.problem import Floats, Mask, RecoveryProblem


class Priorities(StrEnum):
    """How important a query is: a random whole number from 1 to 10, or linear in its workload from 1 to 10."""

    RANDOM = "random"
    WORKLOAD = "workload"


@dataclass(frozen=True)
class UniformSharing:
    """A partition is shared by 1 to `most` queries, every number equally likely: figure 16 (a) and (c)."""

    most: int

    def __post_init__(self) -> None:
        require_count("sharing.most", self.most)

    def draw(self, sizes: npt.NDArray[np.intp], rng: np.random.Generator) -> Mask:
        """(queries, partitions): give partition after partition to queries that still miss some."""
        missing, columns = sizes.copy(), []
        while missing.any():
            users = min(int(rng.integers(1, self.most + 1)), int(np.count_nonzero(missing)))
            column = np.zeros(missing.size, dtype=bool)
            column[rng.choice(missing.size, users, replace=False, p=missing / missing.sum())] = True
            missing -= column
            columns.append(column)
        return np.array(columns, dtype=bool).reshape(-1, sizes.size).T


@dataclass(frozen=True)
class ZipfSharing:
    """Queries draw partitions without replacement, with weights rank^-skew: roughly the Zipf law of figure 16 (b)."""

    skew: float
    partitions: int

    def __post_init__(self) -> None:
        require("sharing.skew", self.skew, self.skew >= 0, "a finite number of 0 or more")
        require_count("sharing.partitions", self.partitions)

    def draw(self, sizes: npt.NDArray[np.intp], rng: np.random.Generator) -> Mask:
        """(queries, partitions); partitions that no query draws are left out."""
        weights = np.arange(1.0, self.partitions + 1) ** -self.skew
        found = np.zeros((sizes.size, self.partitions), dtype=bool)
        for row, size in zip(found, sizes, strict=True):
            row[rng.choice(self.partitions, min(size, self.partitions), replace=False, p=weights / weights.sum())] = (
                True
            )
        return found[:, found.any(axis=0)]


@dataclass(frozen=True)
class QuerySpec:
    """What is drawn. A query has `fewest` to `most` partitions, its output partition is one of them and its own.

    Costs are whole numbers from 1 to `highest_cost`.
    """

    sharing: UniformSharing | ZipfSharing
    queries: int = 18
    fewest: int = 3
    most: int = 9
    priorities: Priorities = Priorities.RANDOM
    highest_cost: int = 10

    def __post_init__(self) -> None:
        for field in ("queries", "fewest", "highest_cost"):
            require_count(field, getattr(self, field))
        require_count("most", self.most, self.fewest)


def random_queries(spec: QuerySpec, rng: np.random.Generator) -> RecoveryProblem:
    """A problem whose capacity is enough for everything; `with_capacity` makes it scarce.

    A topology of operators with one partition each (like the paper's figure 9) can express any such sharing: shared
    partitions are sources that feed the output partitions of their queries. What is drawn is its problem, because
    that is all that a planner looks at.
    """
    sizes = rng.integers(spec.fewest, spec.most + 1, spec.queries)
    shared = spec.sharing.draw(sizes - 1, rng)
    needs = np.hstack([shared, np.eye(spec.queries, dtype=bool)])
    costs = rng.integers(1, spec.highest_cost + 1, needs.shape[1]).astype(float)
    return RecoveryProblem(
        failed=np.ones(costs.size, dtype=bool),
        queries=tuple(f"Q{i}.0" for i in range(spec.queries)),
        needs=sparse.csr_array(needs.astype(float)),
        costs=costs,
        priorities=_priorities(spec, needs @ costs, rng),
        feeds=_feeds(shared),
        capacity=float(costs.sum()),
    )


def _priorities(spec: QuerySpec, workloads: Floats, rng: np.random.Generator) -> Floats:
    if spec.priorities is Priorities.RANDOM:
        return rng.integers(1, 11, spec.queries).astype(float)
    spread = workloads.max() - workloads.min()
    return 1.0 + 9.0 * (workloads - workloads.min()) / (spread or 1.0)


def _feeds(shared: Mask) -> sparse.csr_array:
    queries, partitions = np.nonzero(shared)
    tasks = sum(shared.shape)
    return sparse.csr_array((np.ones(queries.size), (partitions, shared.shape[1] + queries)), (tasks, tasks))
