"""The plans of `ppa`, figures 12 and 13: which partitions have a copy, by query, kind of plan and number of copies.

Plans weigh partitions by the rates of `tentative_queries`. Under even rates, which planners have when a run does not
name the partitions, every region and every subtree is worth the same: then `dp` and `structure-aware` make the same
plans of these queries, and what `greedy` makes follows from how it breaks ties.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.fidelity import Scorer, worst_case
from models.replication import completeness
from models.replication.mc_trees import upstream_by_task
from models.replication.planners import PLANNERS
from models.topology import InputCorrelation, Topology
from reproductions.ppa.tentative_queries import Query, topology_of_query


class PlannedBy(StrEnum):
    """What makes a plan: three planners by output fidelity, or the structure-aware one by internal completeness."""

    DP = "dp"
    STRUCTURE_AWARE = "structure-aware"
    GREEDY = "greedy"
    COMPLETENESS = "completeness"


class Planned(NamedTuple):
    """One cell of the figures: a query, what makes its plan, and how many partitions may have a copy."""

    query: Query
    planner: PlannedBy
    copies: int


COMPARED = (PlannedBy.DP, PlannedBy.STRUCTURE_AWARE, PlannedBy.GREEDY)
COPIES = {Query.BOUND: (6, 10, 12), Query.SPREAD: (6, 12), Query.INCIDENTS: (6, 12)}
# Of Q2 also one and two regions, and half of another: its `events`, `speeds` and `jams`.
BY_COMPLETENESS = COPIES | {Query.INCIDENTS: (6, 9, 12, 13)}
BY_METRIC = (
    *(Planned(query, PlannedBy.STRUCTURE_AWARE, copies) for query in Query for copies in COPIES[query]),
    *(Planned(query, PlannedBy.COMPLETENESS, copies) for query in Query for copies in BY_COMPLETENESS[query]),
)
BY_PLANNER = tuple(
    Planned(query, planner, copies)
    for query in (Query.BOUND, Query.INCIDENTS)
    for planner in COMPARED
    for copies in COPIES[query]
)


def copies_of(query: Query, planner: PlannedBy) -> tuple[int, ...]:
    """The numbers of copies that the figures have for a query and what makes its plans."""
    cells = dict.fromkeys((*BY_METRIC, *BY_PLANNER))
    return tuple(each.copies for each in cells if (each.query, each.planner) == (query, planner))


@cache
def plan_of(cell: Planned) -> tuple[str, ...]:
    """The partitions that have a copy, by name; the planner may find use for fewer than there may be."""
    topology = topology_of_query(cell.query)
    planner = PLANNERS.get(cell.planner.value, completeness.plan)
    return tuple(topology.names(planner(topology, cell.copies).replicated))


def alike(cell: Planned) -> Iterator[Planned]:
    """The cells of both figures with the same query, number of copies and plan, this one among them."""
    for each in dict.fromkeys((*BY_PLANNER, *BY_METRIC)):
        if (each.query, each.copies) == (cell.query, cell.copies) and plan_of(each) == plan_of(cell):
            yield each


def half_fed_joins(topology: Topology, copied: npt.NDArray[np.bool_]) -> int:
    """How many of the copies, (tasks,), are of joins that get one input stream but not another from the other copies.

    Of a stream, anything is enough.
    """
    complete = Scorer(topology).completeness(worst_case(copied))
    found = 0
    for operator in topology.operators:
        if operator.inputs is InputCorrelation.CORRELATED:
            streams = [upstream_by_task(topology, stream) for stream in topology.inputs_of[operator.name]]
            for has_copy, *inputs in zip(copied[topology.span[operator.name]], *streams, strict=True):
                fed = [bool(complete[list(upstream)].any()) for upstream in inputs]
                found += bool(has_copy) and any(fed) and not all(fed)
    return found
