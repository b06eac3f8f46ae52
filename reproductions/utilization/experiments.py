"""The experiments whose runs table 1 of `utilization` is made of: the word count by failure rate, depth and interval.

Otherwise than in the paper, which ran for 20 to 40 hours, all times but R, c and δ are scaled down: 20 s stand for its
30 minutes between checkpoints. In units of the mean time between failures that is .37 to .83 here, .15 to 1.5 there.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from itertools import count, islice, product
from typing import NamedTuple

from chaos.implications import drawn
from chaos.plan import plan
from experiments.documents.parsing import parse
from experiments.faults import FaultSpec
from experiments.spec import Experiment
from experiments.workloads.catalogue import WordCountSpec
from models.uncertainty import HostGaps
from reproductions.measured import Cell, cells
from results.summary.findings import advice


class Interval(StrEnum):
    """The two checkpoint intervals of a row."""

    DEFAULT = "default"
    BEST = "T*"  # by the costs and the failure rate of the run at the default


class TableRow(NamedTuple):
    """A row of the table.

    mean_s  mean time from one failure in the cluster to the next [s]
    depth   stateful operators in the chain; its stages, which are n of the model, are measured
    """

    mean_s: float
    depth: int


MEANS_S, DEPTHS = (24.0, 36.0, 54.0), (1, 3)
ROWS = tuple(TableRow(*each) for each in product(MEANS_S, DEPTHS))
FEWEST_FAULTS = 20
WORKERS, DEFAULT_S, HEAL_AFTER_S = 3, 20.0, 2.0
BACK_S = 5.0  # from the loss of a host until it is surely back
HOST_GAPS = HostGaps(WORKERS, BACK_S)  # which plans `seeds` takes: fewer short gaps than eq. 10 has, so U is lower
DIGITS = 1  # of T*: its interval is drawn from few checkpoints


def at_both_intervals(size: int) -> list[Experiment]:
    """Each row at the default interval, under `size` seeds, and next at T*, as soon as the run at the default tells it.

    So the two runs of a pair adjoin if, after each run, the first experiment that still lacks one is run.
    """
    defaults = [
        _experiment(row, Interval.DEFAULT, DEFAULT_S, seed)
        for row_seeds in zip(*(seeds(row.mean_s, size) for row in ROWS), strict=True)
        for row, seed in zip(ROWS, row_seeds, strict=True)
    ]
    return [each for cell in cells(defaults) for each in _pair(cell)]


def _pair(default: Cell) -> Iterator[Experiment]:
    """The experiment at the default interval, and that at T* if it is known."""
    yield default.experiment
    if default.run and (best := advice(default.run)):
        interval_s = round(best.optimal_interval_s, DIGITS)
        yield _experiment(row_of(default.experiment), Interval.BEST, interval_s, default.experiment.seed)


@cache
def seeds(mean_s: float, size: int) -> tuple[int, ...]:
    """The first seeds under which hosts fail often enough, and none before it is back. No other rate has the same.

    A strike on a host that is away is no failure. Rates share no seeds, so that each row's luck is its own; depths and
    intervals share them, so that the same failures strike all four.
    """
    first, step = 1 + MEANS_S.index(mean_s), len(MEANS_S)
    return tuple(islice((seed for seed in count(first, step) if _strikes_often_enough(mean_s, seed)), size))


def _strikes_often_enough(mean_s: float, seed: int) -> bool:
    spec = _experiment(TableRow(mean_s, DEPTHS[0]), Interval.DEFAULT, DEFAULT_S, seed).fault_spec
    process = spec.processes[0].model_copy(update={"heal_after": BACK_S})
    slower: FaultSpec = spec.model_copy(update={"processes": (process,)})
    events = plan(slower, seed)
    return len(events) >= FEWEST_FAULTS and drawn(slower, events).absorbed == 0


def row_of(experiment: Experiment) -> TableRow:
    """The row of one of these experiments; raises `TypeError` for one of another workload."""
    if not isinstance(experiment.workload, WordCountSpec):
        raise TypeError(f"{experiment.name} counts no words")
    return TableRow(experiment.window_s / FEWEST_FAULTS, experiment.workload.depth)


def interval_of(experiment: Experiment) -> Interval:
    """Which of the two intervals one of these experiments has."""
    return Interval.BEST if experiment.name.endswith(_ending(Interval.BEST)) else Interval.DEFAULT


def _ending(interval: Interval) -> str:
    return f"-{interval.name.lower()}"


def _experiment(row: TableRow, interval: Interval, interval_s: float, seed: int) -> Experiment:
    rate = round(1 / (WORKERS * row.mean_s), 6)
    document = {
        "name": f"utilization-every{row.mean_s:g}s-depth{row.depth}{_ending(interval)}",
        "window_s": FEWEST_FAULTS * row.mean_s,
        "seed": seed,
        "cluster": {"workers": WORKERS},
        "workload": {"name": "wordcount", "depth": row.depth},
        "engine": {"checkpoint_interval_s": interval_s},
        "faults": {"processes": [{"kind": "kill", "rate": rate, "heal_after": HEAL_AFTER_S}]},
    }
    return parse(Experiment, document, "experiment")
