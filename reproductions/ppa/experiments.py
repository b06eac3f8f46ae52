"""The experiments whose runs the measured figures of `ppa` are made of.

As in the paper, section VI-A: the dataflow of its figure 6, windows of 10 and of 30 s, checkpoints every 5, 15 and
30 s, and one load that is twice the other. Otherwise than there, two hosts have all partitions and two stand by,
instead of 19 and 15. In figures 7, 8 and 10 the larger load is the smaller one of the paper: two cores cannot carry
twice as much. Figure 9 has a sixteenth of the paper's loads: 1,000 and 2,000 records/s in all, where the paper has them
from each of 16 sources. No limit of the machine asks for that: the same hosts carry 16,000 records/s in other figures.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import product
from typing import Any

from experiments.documents.parsing import parse
from experiments.recovery_modes import RecoveryMode
from experiments.spec import Experiment
from experiments.workloads.window_tree import WindowTreeSpec
from reproductions.measured import repeated


class Mode(StrEnum):
    """A technique, as the paper names it. The number is the share of partitions that have a copy."""

    ALL = "PPA-1.0"
    HALF = "PPA-0.5"
    NONE = "PPA-0"
    STORM = "Storm"  # what is lost is made again from the input of the dataflow


class Failure(StrEnum):
    """Which of the hosts that have partitions fail."""

    ONE = "one host"
    ALL = "all hosts"


RATIOS = {Mode.ALL: 1.0, Mode.HALF: 0.5, Mode.NONE: 0.0}
HOSTS, STANDBY = 4, 2  # those that stand by are the last ones
# Between kills lie whole intervals and a quarter (of 5 s), three quarters (of 15 s) or three eighths (of 30 s). So the
# kills of a run find checkpoints of different ages, whenever its window opens.
KILLS_AT_S = (20.0, 61.25, 102.5)
WINDOW_S, HEAL_AFTER_S = 115.0, 5.0
WINDOWS_S, RATES, INTERVALS_S = (10.0, 30.0), (8000.0, 16000.0), (5.0, 15.0, 30.0)
SETTINGS = ((WINDOWS_S[-1], RATES[0]), *((length_s, RATES[-1]) for length_s in WINDOWS_S))
USUAL_INTERVAL_S = 15.0  # where the figure does not compare intervals
COST_RATES, COST_INTERVALS_S, COST_WINDOW_S = (1000.0, 2000.0), (1.0, *INTERVALS_S), 60.0
# Those that have primaries: what a kill takes goes to the hosts that stand by, and a host that comes back stands by.
TARGETS = {
    Failure.ONE: (["worker-1"], ["worker-2"], ["worker-3"]),
    Failure.ALL: (["worker-1", "worker-2"], ["worker-3", "worker-4"], ["worker-1", "worker-2"]),
}


def one_lost(size: int) -> list[Experiment]:
    """Every technique with the longer window at both loads, and with the shorter one at the larger; one host lost."""
    return repeated(_lost(Failure.ONE), size)


def all_lost(size: int) -> list[Experiment]:
    """The same, all hosts with partitions lost."""
    return repeated(_lost(Failure.ALL), size)


def all_lost_partially_active(size: int) -> list[Experiment]:
    """Those of `all_lost` with the longer window and some share of copies."""
    return [each for each in all_lost(size) if window_of(each) == WINDOWS_S[-1] and mode_of(each) is not Mode.STORM]


def undisturbed(size: int) -> list[Experiment]:
    """Checkpoints at every interval, without faults."""
    settings = product(COST_RATES, COST_INTERVALS_S)
    made = (_experiment("cost", Mode.NONE, WINDOWS_S[-1], *each, window_s=COST_WINDOW_S) for each in settings)
    return repeated(made, size)


def mode_of(experiment: Experiment) -> Mode:
    """The technique of one of these experiments."""
    engine = experiment.engine
    if engine.recovery_run is RecoveryMode.SOURCE_REPLAY:
        return Mode.STORM
    return next(mode for mode, ratio in RATIOS.items() if ratio == engine.replication_ratio_run)


def window_of(experiment: Experiment) -> float:
    """The query's window [s]."""
    workload = experiment.workload
    return workload.window_s if isinstance(workload, WindowTreeSpec) else 0.0


def _lost(failure: Failure) -> Iterable[Experiment]:
    """Passive recovery under every checkpoint interval, the other techniques under one."""
    kills = zip(KILLS_AT_S, TARGETS[failure], strict=True)
    faults = {"events": [{"at": at, "targets": targets, "heal_after": HEAL_AFTER_S} for at, targets in kills]}
    purpose = failure.value.replace(" ", "-")
    for mode, (length_s, rate) in product(Mode, SETTINGS):
        for interval_s in INTERVALS_S if mode is Mode.NONE else (USUAL_INTERVAL_S,):
            yield _experiment(purpose, mode, length_s, rate, interval_s, window_s=WINDOW_S, faults=faults)


def _experiment(purpose: str, mode: Mode, length_s: float, rate: float, interval_s: float, **fields: Any) -> Experiment:
    engine: dict[str, Any] = {"name": "dataflow", "protocol": "batch-aligned", "partitions": 16, "standby": STANDBY}
    engine |= {"checkpoint_interval_s": interval_s, "recovery": RecoveryMode.SOURCE_REPLAY}
    if mode in RATIOS:
        engine |= {"recovery": RecoveryMode.PARTIALLY_ACTIVE, "replication_ratio": RATIOS[mode]}
    settings = f"w{length_s:g}-r{rate:g}-c{interval_s:g}"
    document: dict[str, Any] = {
        "name": f"ppa-{purpose}-{mode.value.lower().replace('.', '')}-{settings}",
        "cluster": {"workers": HOSTS, "worker_cores": 1},
        "workload": {"name": "window-tree", "window_s": length_s, "slide_s": 1},
        "engine": engine,
        "load": {"mode": "rate", "rate": rate},
    }
    return parse(Experiment, document | fields, "experiment")
