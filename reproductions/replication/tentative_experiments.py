"""The experiments whose runs figures 12 and 13 of `ppa` are made of.

As in the paper, section VI-B, all hosts with primaries fail, and what has a copy goes on alone. Four hosts have all
partitions. One or two stand by, whose room the copies fill, so that nothing else is restored until hosts are back.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import product
from typing import Any

from experiments.parsing import parse
from experiments.ppa_queries import Binding, Top100Spec
from experiments.recovery_modes import RecoveryMode, ReplicationPlanner
from experiments.spec import Experiment
from reproductions.checkmate.experiments import repeated


class Query(StrEnum):
    """The queries of the paper; entries of Q1 are bound to servers, or every server gives them out."""

    BOUND = "Q1"
    SPREAD = "Q1, entries spread"
    INCIDENTS = "Q2"


WORKLOADS: dict[Query, dict[str, Any]] = {
    Query.BOUND: {"name": "top-100", "window_s": 5, "slide_s": 1, "binding": Binding.BOUND},
    Query.SPREAD: {"name": "top-100", "window_s": 5, "slide_s": 1, "binding": Binding.SPREAD},
    Query.INCIDENTS: {
        **{"name": "incidents", "window_s": 5, "slide_s": 1, "users": 1000, "segments": 500},
        **{"events_per_incident": 200, "jam_share": 1},
    },
}
SOURCES = {Query.BOUND: 8, Query.SPREAD: 8, Query.INCIDENTS: 4}
PARTITIONS = {Query.BOUND: 16, Query.SPREAD: 16, Query.INCIDENTS: 18}
PRIMARIES, ROOM = 4, 6  # hosts, and how many partitions the largest of their slots has
STANDBY = (1, 2)
RATE, WINDOW_S, KILL_AT_S, HEAL_AFTER_S, INTERVAL_S = 2000.0, 110.0, 40.0, 40.0, 5.0
WHOLE_TREES, SINGLE_TASKS = ReplicationPlanner.STRUCTURE_AWARE, ReplicationPlanner.GREEDY
COMPARED = (ReplicationPlanner.DP, WHOLE_TREES, SINGLE_TASKS)


def by_metric(size: int) -> list[Experiment]:
    """Plans of whole MC-trees for every query, and of the query that joins also plans of single tasks.

    The paper makes plans by internal completeness for the comparison. A plan is made here before any rate is known, and
    under even rates such a plan has whole trees, too. Those of single tasks are what completeness judges wrongly.
    """
    return repeated(_made([*((query, WHOLE_TREES) for query in Query), (Query.INCIDENTS, SINGLE_TASKS)]), size)


def by_planner(size: int) -> list[Experiment]:
    """Every planner of the figure for both queries."""
    return repeated(_made(list(product((Query.BOUND, Query.INCIDENTS), COMPARED))), size)


def query_of(experiment: Experiment) -> Query:
    """The query of one of these experiments."""
    workload = experiment.workload
    if not isinstance(workload, Top100Spec):
        return Query.INCIDENTS
    return Query.BOUND if workload.binding is Binding.BOUND else Query.SPREAD


def copies_of(experiment: Experiment) -> int:
    """How many copies the hosts that stand by have room for."""
    return experiment.engine.standby_run * ROOM


def _made(cells: list[tuple[Query, ReplicationPlanner]]) -> Iterable[Experiment]:
    for (query, planner), standby in product(cells, STANDBY):
        yield _experiment(query, planner, standby)


def _experiment(query: Query, planner: ReplicationPlanner, standby: int) -> Experiment:
    hosts = [f"worker-{number}" for number in range(1, PRIMARIES + 1)]
    purpose = query.name.lower()
    document: dict[str, Any] = {
        "name": f"ppa-quality-{purpose}-{planner.value}-{standby * ROOM}",
        "window_s": WINDOW_S,
        "cluster": {"workers": PRIMARIES + standby, "worker_cores": 1},
        "workload": WORKLOADS[query],
        "engine": {
            "name": "dataflow",
            "protocol": "batch-aligned",
            "recovery": RecoveryMode.PARTIALLY_ACTIVE,
            "replication_planner": planner,
            "replication_ratio": standby * ROOM / PARTITIONS[query],
            "standby": standby,
            "standby_room": 0,
            "tentative": True,
            "checkpoint_interval_s": INTERVAL_S,
            "partitions": SOURCES[query],
        },
        "load": {"mode": "rate", "rate": RATE},
        "faults": {"events": [{"at": KILL_AT_S, "targets": hosts, "heal_after": HEAL_AFTER_S}]},
    }
    return parse(Experiment, document, "experiment")
