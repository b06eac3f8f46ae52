"""What a run in mode `task` says of its tasks: what a batch consists of, and how slow the first tasks of a host are.

A host is away from the strike until it has a Spark executor again. Its new executor is cold, and its first task of each
stage takes longer than those of the other hosts. How much longer is known from the executors that came after *other*
faults: else the excess of a batch would explain itself.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from models.replay.draws import draw
from models.replay.task_batches import Stages, Strike, TaskBatches
from models.replay.work import Array
from results.predictions.outages import StruckFault
from results.predictions.process import FEWEST_RECOVERIES, MeasuredProcess, Unreplayable

COLD, AWAY = "the first task on a host that had come back", "how long a task takes while hosts are away"


def task_batches(
    struck: MeasuredProcess,
    source: MeasuredProcess,
    costs_s: Array,
    rng: np.random.Generator,
    *,
    interval_s: float | None,
    trigger_s: float,
) -> TaskBatches:
    """The batches of a run and the faults on its hosts, with stages and cold executors as the source measured them."""
    cluster = struck.experiment.cluster
    return TaskBatches(
        costs_s,
        struck.batches["length_s"].to_numpy(),
        _stages(source),
        hosts=cluster.workers,
        cores=cluster.worker_cores,
        strikes=_strikes(struck, source, rng, len(costs_s)),
        interval_s=interval_s,
        trigger_s=trigger_s,
    )


def _stages(process: MeasuredProcess) -> Stages:
    """The stages of the batches that no fault touched."""
    done = process.tasks[process.tasks["succeeded"] & process.tasks["batch"].isin(process.undisturbed_s.index)]
    if done.empty:
        raise Unreplayable("table spark_tasks has no task of a batch that no fault touched")
    spans = done.groupby(["stage", "batch"]).agg({"task": "nunique", "launched_s": "min", "ended_s": "max"})
    lengths_s = process.undisturbed_s.loc[spans.index.get_level_values("batch")].to_numpy()
    shares = ((spans["ended_s"] - spans["launched_s"]) / lengths_s).groupby("stage").mean()
    return Stages(tuple(spans["task"].groupby("stage").median().round().astype(int)), tuple(shares))


def _strikes(struck: MeasuredProcess, source: MeasuredProcess, rng: np.random.Generator, runs: int) -> list[Strike]:
    measured = {COLD: _excesses_s(source), AWAY: _paces(source)}
    names = sorted({host for each in struck.strikes if not struck.stops_all(each) for host in each.targets})
    found, faults = list[Strike](), [each.fault for each in source.strikes]
    weights = pd.DataFrame(rng.exponential(size=(runs, len(faults))), columns=faults)
    for strike in struck.strikes:
        whole, own = struck.stops_all(strike), [strike.fault] if source is struck else []
        taken = [number for number, name in enumerate(names) if name in strike.targets]
        back_s = np.full(runs, 0.0 if whole else _until_s(struck, strike))
        others = {what: table.drop(index=own, errors="ignore") for what, table in measured.items()}
        cold_s, pace = (_drawn(known, what, weights, rng) for what, known in others.items())
        hosts = None if whole else np.isin(range(struck.experiment.cluster.workers), taken)
        found.append(Strike(hosts, back_s, cold_s, pace))
    return found


def _drawn(known: pd.DataFrame, what: str, weights: pd.DataFrame, rng: np.random.Generator) -> Array:
    """For each stage one of the values that are known of it, in each run, (runs, stages).

    A fault has the same weight for every stage, strike and quantity of a run: a column of `weights` is a fault.
    Raises `Unreplayable` if too few values are known.
    """
    drawn = []
    for stage in known:
        given = known[stage].dropna()
        if len(given) < FEWEST_RECOVERIES:
            told = f"{what} of stage {stage} was measured after {len(given)} other faults"
            raise Unreplayable(f"{told}; at least {FEWEST_RECOVERIES} are needed")
        drawn.append(given.to_numpy(dtype=float)[draw(rng, weights[given.index].to_numpy())])
    return np.stack(drawn, axis=1)


def _known(measured: dict[int, pd.Series], stages: list[int]) -> pd.DataFrame:
    """What was measured, by fault and by stage; nan where it was not."""
    return pd.DataFrame(measured.values(), index=list(measured), columns=stages, dtype=float)


def _paces(process: MeasuredProcess) -> pd.DataFrame:
    """How long a task takes while hosts are away, by fault and by stage, relative to its time with all hosts.

    Relative to the records of its batch; without the first tasks of executors.
    """
    done = _done(process)
    warm = done[~done["first"]]
    by_fault, away = dict[int, pd.Series](), pd.Series(data=False, index=warm.index)
    for strike in process.strikes:
        if not process.stops_all(strike):
            now = warm["launched_s"].between(strike.struck_s, _until_s(process, strike))
            by_fault[strike.fault], away = warm[now].groupby("stage")["by_record_s"].mean(), away | now
    usual_s = warm[~away].groupby("stage")["by_record_s"].mean()
    relative = {fault: found_s / usual_s for fault, found_s in by_fault.items()}
    return _known(relative, sorted(done["stage"].unique()))


def _done(process: MeasuredProcess) -> pd.DataFrame:
    """The tasks that came to their end, and which of them were the first of their stage on their executor."""
    done = process.tasks[process.tasks["succeeded"]].sort_values("launched_s")
    seconds, records = done["ended_s"] - done["launched_s"], done["batch"].map(process.records)
    first = ~done.duplicated(["executor", "stage"])
    return done.assign(seconds=seconds, by_record_s=seconds / records.where(records > 0), first=first)


def _until_s(process: MeasuredProcess, strike: StruckFault) -> float:
    """When the hosts of a fault had executors again, or the end of the window."""
    if all(each.executors_s is None for each in process.strikes):
        raise Unreplayable("table faults does not say when a host that was struck had an executor again")
    return process.window_s if strike.executors_s is None else strike.executors_s


def _excesses_s(process: MeasuredProcess) -> pd.DataFrame:
    """How much longer than usual the first task took that a new executor did of a stage: by fault, and by stage [s].

    A row for each fault; nan if an executor that came after it never ended a task of the stage. What is usual is the
    median of the tasks of the same stage and batch that were not the first of an executor, or of all batches.
    """
    done = _done(process)
    warm = done[~done["first"]]
    usual_s = warm.groupby(["batch", "stage"])["seconds"].median().rename("usual_s")
    firsts = done[done["first"]].join(usual_s, on=["batch", "stage"])
    firsts["usual_s"] = firsts["usual_s"].fillna(firsts["stage"].map(warm.groupby("stage")["seconds"].median()))
    firsts["excess_s"] = (firsts["seconds"] - firsts["usual_s"]).clip(lower=0.0)
    came_s = process.tasks.groupby(["host", "executor"])["launched_s"].min()
    partial = [strike for strike in process.strikes if not process.stops_all(strike)]
    rows = {strike.fault: _of_fault(process, strike, firsts, came_s) for strike in partial}
    return _known(rows, sorted(done["stage"].unique()))


def _of_fault(process: MeasuredProcess, strike: StruckFault, firsts: pd.DataFrame, came_s: pd.Series) -> pd.Series:
    """The excess by stage, as a mean over the first executors that came to the hosts of a fault, before the next fault
    on each."""
    new = []
    for host in strike.targets:
        later_s = [
            each.struck_s for each in process.strikes if host in each.targets and each.struck_s > strike.struck_s
        ]
        of_host = came_s.get(host, pd.Series(dtype=float))
        came = of_host[(of_host > strike.struck_s) & (of_host < min(later_s, default=np.inf))]
        new += list(came.sort_values().index[:1])  # their names, such as 9 and 10, are not in the order of time
    return firsts[firsts["executor"].isin(new)].groupby("stage")["excess_s"].mean()
