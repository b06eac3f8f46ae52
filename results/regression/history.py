"""Selects the runs to compare: the history of an experiment on a class of machine, the latest runs, the baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, groupby
from pathlib import Path

import numpy as np

from experiments.documents.parsing import read_mapping
from experiments.errors import BadInput
from results.regression.judging import FEWEST_BASELINE, FEWEST_CANDIDATES, Pair, on_scale
from results.runs import store
from results.runs.machine_speed import are_alike
from results.runs.state import RunState
from results.summary import index
from results.summary.metrics import Metric
from results.tables.schema import SCHEMA_VERSION

CANDIDATES, BASELINE = 5, 20  # runs under each seed
OFTEN = FEWEST_CANDIDATES + FEWEST_BASELINE  # runs under a seed that can be compared among themselves
PINS = "baselines.yaml"


@dataclass(frozen=True)
class HistoryRow:
    """What comparisons need of a run; `facts` is its row of the table `runs`.

    is_published  whether it came with the repository; such a run is in no history, only where it is named
    """

    run_id: str
    state: str
    experiment: str
    experiment_digest: str | None
    machine: str | None
    machine_speed: float | None
    schema_version: int | None
    started_ns: int
    facts: Mapping[str, object]
    metrics: Mapping[str, float]
    is_published: bool = False


def _rows(listed: Iterable[index.IndexRow]) -> list[HistoryRow]:
    """Those of the listed runs that could be read."""
    names = HistoryRow.__annotations__
    read = (each for each in listed if each.state not in (RunState.UNREADABLE, RunState.UNREAD))
    return [HistoryRow(**{name: getattr(each, name) for name in names}) for each in read]


def row(run: store.Run) -> HistoryRow:
    """What comparisons need of one run; raises `Damaged` for one that cannot be read."""
    found = index.read_row(run)
    return HistoryRow(**{name: getattr(found, name) for name in HistoryRow.__annotations__})


@dataclass(frozen=True)
class Series:
    """Runs that can be compared, oldest first: done, of one experiment digest, on one class of machine.

    `other_speeds` are the machine speeds of other such runs, which are left out (`by_speed`).
    """

    experiment: str
    digest: str
    machine: str
    runs: tuple[HistoryRow, ...]
    other_speeds: tuple[float, ...] = ()


@dataclass(frozen=True)
class Split:
    """Candidates and baseline by stratum; `pinned` if the baseline was set by hand.

    `reseeded` if the seeds were changed: runs under other seeds ran other plans of faults, and are not compared with.
    `passed_over` if runs of the experiment were pinned, but none that can be compared with these: since the experiment
    was changed, they ran on another class of machine, or their tables are of another version.
    """

    strata: tuple[tuple[tuple[HistoryRow, ...], tuple[HistoryRow, ...]], ...]
    pinned: bool
    reseeded: bool = False
    passed_over: bool = False

    @property
    def candidates(self) -> list[HistoryRow]:
        """The candidates of all strata, stratum by stratum."""
        return [run for candidates, _ in self.strata for run in candidates]

    @property
    def baseline(self) -> list[HistoryRow]:
        """The baseline runs of all strata, stratum by stratum."""
        return [run for _, baseline in self.strata for run in baseline]


def all_series(experiment: str | None = None, *, outdated: bool = False) -> list[Series]:
    """Every history, as `series_of`, of all finished runs; of one experiment only if it is named."""
    return series_of(index.rows(), experiment, outdated=outdated)


def series_of(
    listed: Iterable[index.IndexRow], experiment: str | None = None, *, outdated: bool = False
) -> list[Series]:
    """The histories of runs that are listed newest first, that of the latest runs first.

    Runs of older versions are in none: those that do not say what they ran or where, and unless `outdated` those whose
    tables are of another schema version, until they are computed again (`aftershock results recompute`).
    """
    found: dict[tuple[str, str, str], list[HistoryRow]] = defaultdict(list)
    for run in _rows(listed):
        comparable = run.state == RunState.DONE and (outdated or run.schema_version == SCHEMA_VERSION)
        if comparable and run.experiment_digest and run.machine and experiment in (None, run.experiment):
            found[str(run.experiment), run.experiment_digest, run.machine].append(run)
    return [Series(*key, runs=tuple(reversed(runs))) for key, runs in found.items()]


def latest_series(experiment: str | None = None) -> list[Series]:
    """The history that is still being written: of every experiment and class of machine the digest last run.

    Of it only the runs on machines as fast as the latest.
    """
    latest: dict[tuple[str, str], Series] = {}
    for series in all_series(experiment):
        latest.setdefault((series.experiment, series.machine), series)
    return [next(by_speed(series)) for series in latest.values()]


def by_speed(series: Series) -> Iterator[Series]:
    """Its runs by the speed of their machine, first those on machines as fast as that of the latest run.

    Where the speed was not measured it is taken to be the same.
    """
    left = series.runs
    while left:
        speed = left[-1].machine_speed
        alike = [are_alike(run.machine_speed, speed) for run in left]
        runs, left = (
            tuple(compress(left, alike)),
            tuple(run for run, is_in in zip(left, alike, strict=True) if not is_in),
        )
        others = (run.machine_speed for run in series.runs if not are_alike(run.machine_speed, speed))
        yield replace(series, runs=runs, other_speeds=tuple(each for each in others if each is not None))


def split(series: Series, set_aside: Collection[str], pins: Mapping[str, Sequence[str]]) -> Split:
    """Take the latest runs as candidates, and as their baseline those pinned by hand or else the latest before them.

    Those `set_aside` are in no baseline but a pinned one. Candidates are later than the last pinned run of their seed:
    a pinned level is not judged by the one that it replaced.
    """
    by_hand = set(pins.get(series.experiment, ()))
    pinned = by_hand.intersection(run.run_id for run in series.runs)
    strata, (groups, reseeded) = [], _comparable(series.runs)
    for runs in groups:
        chosen = [run for run in runs if run.run_id in pinned]
        later = runs[runs.index(chosen[-1]) + 1 :] if chosen else runs
        candidates, earlier = later[-CANDIDATES:], later[:-CANDIDATES]
        if not pinned:
            chosen = [run for run in earlier if run.run_id not in set_aside][-BASELINE:]
        strata.append((tuple(candidates), tuple(chosen)))
    return Split(tuple(strata), bool(pinned), reseeded, passed_over=bool(by_hand) and not pinned)


def _comparable(runs: Sequence[HistoryRow]) -> tuple[list[Sequence[HistoryRow]], bool]:
    """The runs under each seed that comes back run after run, or all together if none does; and if seeds were changed.

    A seed that has not been used lately is left out. Where that is true of all that came back, only the runs since then
    are comparable: a difference from those before may be that of the seeds. Where the latest run is under a seed that
    has not come back often enough, the latest such runs are a group, too small to hold a baseline.
    """
    often = _often(runs)
    lately = runs[-CANDIDATES * len(often) :]
    used: list[Sequence[HistoryRow]] = [own for own in often if own[-1] in lately]
    if not often:
        return [runs], False
    if not used:
        last = max(runs.index(own[-1]) for own in often)
        return _comparable(runs[last + 1 :])[0], True
    new = [run for run in lately if not any(run in own for own in used)][-CANDIDATES:]
    return ([*used, new], True) if runs[-1] in new else (used, False)


def _often(runs: Sequence[HistoryRow]) -> list[list[HistoryRow]]:
    return [own for own in _by_seed(runs).values() if len(own) >= OFTEN]


def stratified(candidates: Sequence[HistoryRow], baseline: Sequence[HistoryRow]) -> Split:
    """Two sets of runs, by seed if each seed has enough runs on both sides; else all of them are one stratum.

    Where a seed that comes back on one side is not on the other, a difference may be that of the seeds: nothing is
    compared.
    """
    ours, theirs = _by_seed(candidates), _by_seed(baseline)
    if any(len((ours | theirs)[seed]) > 1 for seed in ours.keys() ^ theirs.keys()):
        return Split(((tuple(candidates), ()), ((), tuple(baseline))), pinned=True, reseeded=True)
    enough = ours.keys() == theirs.keys() and all(
        len(runs) >= FEWEST_CANDIDATES and len(theirs[seed]) >= FEWEST_BASELINE for seed, runs in ours.items()
    )
    strata = [(runs, theirs[seed]) for seed, runs in ours.items()] if enough else [(candidates, baseline)]
    return Split(tuple((tuple(runs), tuple(earlier)) for runs, earlier in strata), pinned=True)


def _by_seed(runs: Sequence[HistoryRow]) -> dict[object, list[HistoryRow]]:
    seeds: dict[object, list[HistoryRow]] = defaultdict(list)
    for run in runs:
        seeds[run.facts.get("seed")].append(run)
    return seeds


def pair(metric: Metric, strata: Iterable[tuple[Sequence[HistoryRow], Sequence[HistoryRow]]]) -> Pair:
    """The values of one metric by stratum, where it was measured."""
    return Pair(metric, tuple((_values(metric, runs), _values(metric, baseline)) for runs, baseline in strata))


def _values(metric: Metric, runs: Sequence[HistoryRow]) -> np.ndarray:
    return np.array([run.metrics[metric.name] for run in runs if metric.name in run.metrics], dtype=float)


def stretches(runs: Sequence[HistoryRow]) -> list[list[HistoryRow]]:
    """The runs from one change of the seeds that come back, or of the machine's speed, to the next.

    Within one, seeds and time are apart.
    """
    places = {run.run_id: place for place, run in enumerate(runs)}
    spans = [(places[own[0].run_id], places[own[-1].run_id]) for own in _often(runs)]
    in_use = [tuple(first <= place <= last for first, last in spans) for place in range(len(runs))]
    grouped = groupby(zip(in_use, _machines(runs), runs, strict=True), key=lambda each: each[:2])
    return [[run for *_, run in stretch] for _, stretch in grouped]


def _machines(runs: Sequence[HistoryRow]) -> Iterator[int]:
    """How often the machine's speed had changed by each run."""
    changes, speed = 0, None
    for run in runs:
        is_same = are_alike(run.machine_speed, speed)
        changes += not is_same
        speed = speed if is_same and speed is not None else run.machine_speed
        yield changes


def levelled(metric: Metric, stretch: Sequence[HistoryRow]) -> np.ndarray:
    """The values of runs that measured a metric, on its scale, with the usual difference between seeds taken out."""
    values = on_scale(metric, _values(metric, stretch))
    usual = np.median(values)
    seeds = np.array([run.facts.get("seed") for run in stretch])
    for own_runs in _often(stretch):
        own = seeds == own_runs[0].facts.get("seed")
        values[own] += usual - np.median(values[own])
    return values


def read_pins() -> dict[str, list[str]]:
    """The baselines set by hand in `baselines.yaml`: run ids by experiment; raises `BadInput` for anything else."""
    path = store.home() / PINS
    if not path.exists():
        return {}
    pins = read_mapping(path, PINS, str(path), may_be_empty=True)
    for experiment, run_ids in pins.items():
        _check_pins(path, experiment, run_ids)
    return pins


def _check_pins(path: Path, experiment: object, run_ids: object) -> None:
    if not isinstance(run_ids, list) or not run_ids:
        raise BadInput(str(experiment), run_ids, "a list of run ids", path.name)
    for run_id in run_ids:
        if not isinstance(run_id, str) or not store.RUN_ID.fullmatch(run_id) or not store.is_finished(run_id):
            raise BadInput(str(experiment), run_id, "the ids of finished runs", path.name)
