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

from models.replication import completeness
from models.replication.planners import PLANNERS
from reproductions.ppa.tentative_queries import Query, topology_of_query


class PlannedBy(StrEnum):
    """What makes a plan: three planners by output fidelity, or the highest internal completeness."""

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
BY_COMPLETENESS = (9, 12)  # of Q2. With fewer than 7 copies, only the trees of single regions have any output
BY_METRIC = (
    *(Planned(query, PlannedBy.STRUCTURE_AWARE, copies) for query in Query for copies in COPIES[query]),
    *(Planned(Query.INCIDENTS, PlannedBy.COMPLETENESS, copies) for copies in BY_COMPLETENESS),
)
BY_PLANNER = tuple(
    Planned(query, planner, copies)
    for query in (Query.BOUND, Query.INCIDENTS)
    for planner in COMPARED
    for copies in COPIES[query]
)


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
