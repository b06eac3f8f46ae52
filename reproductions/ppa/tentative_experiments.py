"""The experiments whose runs figures 12 and 13 of `ppa` are made of.

As in the paper, section VI-B, all hosts with primaries fail, and what has a copy goes on alone. Four hosts have all
partitions. One to three stand by, whose room the copies fill, so that nothing else is restored until hosts are back.
Cells with the same plan share a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from experiments.documents.parsing import parse
from experiments.recovery_modes import RecoveryMode
from experiments.spec import Experiment
from reproductions.measured import repeated
from reproductions.ppa.tentative_plans import BY_METRIC, BY_PLANNER, Planned, PlannedBy, alike, plan_of
from reproductions.ppa.tentative_queries import RATE, SOURCES, WORKLOADS

PRIMARIES, ROOM = 4, 6  # hosts, and how many partitions the largest of their slots has
WINDOW_S, KILL_AT_S, HEAL_AFTER_S, INTERVAL_S = 110.0, 40.0, 40.0, 5.0


def by_metric(size: int) -> list[Experiment]:
    """Plans by output fidelity and plans by internal completeness, for every query."""
    return repeated(_each_once(BY_METRIC), size)


def by_planner(size: int) -> list[Experiment]:
    """Every planner of the figure for both queries."""
    return repeated(_each_once(BY_PLANNER), size)


def _each_once(cells: Iterable[Planned]) -> list[Experiment]:
    return list({each.name: each for each in map(experiment_of, cells)}.values())


@cache
def experiment_of(cell: Planned) -> Experiment:
    """The experiment that a cell is measured in. Its name has the planners that make this plan."""
    hosts = [f"worker-{number}" for number in range(1, PRIMARIES + 1)]
    standby = -(-cell.copies // ROOM)
    planners = "-".join(_named_after(cell))
    return parse(
        Experiment,
        {
            "name": f"ppa-quality-{cell.query.name.lower()}-{cell.copies}-{planners}",
            "window_s": WINDOW_S,
            "cluster": {"workers": PRIMARIES + standby, "worker_cores": 1},
            "workload": WORKLOADS[cell.query],
            "engine": {
                "name": "dataflow",
                "protocol": "batch-aligned",
                "recovery": RecoveryMode.PARTIALLY_ACTIVE,
                "copied": list(plan_of(cell)),
                "standby": standby,
                "standby_room": 0,
                "tentative": True,
                "checkpoint_interval_s": INTERVAL_S,
                "partitions": SOURCES[cell.query],
            },
            "load": {"mode": "rate", "rate": RATE},
            "faults": {"events": [{"at": KILL_AT_S, "targets": hosts, "heal_after": HEAL_AFTER_S}]},
        },
        "experiment",
    )


def _named_after(cell: Planned) -> list[str]:
    """The planners by output fidelity that make this plan; only if there are none, the one by completeness.

    A run counts only for an experiment of its name. So a plan by completeness, if it is the same, changes no name.
    """
    planners = [each.planner for each in alike(cell)]
    by_fidelity = [each.value for each in planners if each is not PlannedBy.COMPLETENESS]
    return by_fidelity or [PlannedBy.COMPLETENESS.value]
