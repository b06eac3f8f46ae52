"""Predicts a run's utilization from what it measured, and writes the tables that compare both."""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.errors import BadInput
from experiments.spec import Experiment
from experiments.wording import on_one_line
from models.uncertainty import Prediction, predict_run
from results.damage import Damaged
from results.predictions import long_run
from results.predictions.described import not_described
from results.predictions.process import MeasuredProcess, Unreplayable
from results.predictions.replays import RunReplay, replay_run
from results.runs import store
from results.runs.machine import experiment_digest
from results.runs.state import RunState
from results.runs.store import Run
from results.summary.findings import (
    LAW_MODEL,
    LONG_RUN,
    LONG_RUN_MODEL,
    NO_FAULTS_MODEL,
    OTHER_COSTS_MODEL,
    REPLAY_MODEL,
    mean,
    measured_row,
    the_run,
)
from results.tables.columns import Row
from results.tables.schema import KEPT_CLASSES, RUN_TABLES, SCHEMA_VERSION

SEED = 20_190
PARTS = ("down_s", "warm_up_s", "lost_s")  # of an outage
MOST_POINTS = 1000  # of the useful time against the clock


def write_predictions(run: Run, experiment: Experiment) -> pd.DataFrame:
    """Write `predictions`, `replayed_recoveries` and `useful_time`; returns the first.

    A run is judged by the replay of the faults that struck it, or by the model without faults if none did. Eq. 10 at
    the rate of the law that the faults were drawn from says what another seed would give. A row that predicts nothing
    says why.
    """
    process, measured = MeasuredProcess(run, experiment), float(measured_row(run)["utilization"])
    reason = not_described(experiment)
    rows: list[Row] = []
    replay: RunReplay | None = None
    if reason:
        rows.append({"model": reason, "why": reason})
    elif process.strikes:
        replay, why = _attempt(process)
        rows.append(_replay_row(REPLAY_MODEL, replay, why) | _inputs(process, process.struck_rate))
        rows += _with_costs_of_another(run, experiment, process)
        rows += _in_the_long_run(process) if replay else []
    else:
        rows.append(_without_faults(process))
    if reason is None and experiment.faults.can_fail:
        rows.append(_eq_10(process, LAW_MODEL, None, _law(experiment)))
    stated = {"quantity": "utilization", "measured": measured}
    table = RUN_TABLES["predictions"].of(stated | row for row in rows)
    run.write_table("predictions", table)
    found = {
        "replayed_recoveries": _recoveries(process, replay) if replay else [],
        "useful_time": _useful_time(run, process, replay) if replay else [],
    }
    for name, named in found.items():
        run.write_table(name, RUN_TABLES[name].of(named))
    return table.to_pandas()


def _attempt(process: MeasuredProcess, costs: MeasuredProcess | None = None) -> tuple[RunReplay | None, str | None]:
    """The replay, or why there is none."""
    try:
        return replay_run(process, costs), None
    except Unreplayable as lack:
        return None, str(lack)


def _replay_row(model: str, replay: RunReplay | None, why: str | None) -> Row:
    if replay is None:
        return {"model": model, "why": why}
    low, high = replay.bounds
    return {"model": model, "predicted": replay.predicted, "low": low, "high": high}


def _with_costs_of_another(run: Run, experiment: Experiment, process: MeasuredProcess) -> list[Row]:
    """The replay with c and R of the last finished run of the same experiment under another seed, if there is one."""
    other = _another(run, experiment)
    if other is None:
        return []
    costs = MeasuredProcess(other, experiment)
    try:
        replay, why = _attempt(process, costs)
        inputs = _inputs(costs, process.struck_rate)
    except (Damaged, FileNotFoundError):
        return []
    return [_replay_row(OTHER_COSTS_MODEL.format(other.run_id), replay, why) | inputs]


def _another(run: Run, experiment: Experiment) -> Run | None:
    digest, before_ns = experiment_digest(experiment), int(measured_row(run)["window_start_ns"])
    comparable: Row = {
        "experiment_digest": digest,
        "machine": run.known_status().machine,
        "state": RunState.DONE,
        "schema_version": SCHEMA_VERSION,
    }
    for other in store.all_finished():
        status = other.known_status()
        same = all(getattr(status, name) == value for name, value in comparable.items())
        if (
            same
            and status.started_ns < before_ns
            and other.run_id != run.run_id
            and _has_another_seed(other, experiment)
        ):
            return other
    return None


def _has_another_seed(other: Run, experiment: Experiment) -> bool:
    """Whether its tables can be read, and are of another seed."""
    try:
        row = the_run(other)
    except Damaged:
        return False
    return row is not None and int(row["seed"]) != experiment.seed


def _in_the_long_run(process: MeasuredProcess) -> list[Row]:
    """Eq. 10 with the inputs of this run, and where the simulated mean of its own process says that it must be."""
    try:
        low, high = long_run.bounds(process)
    except BadInput as refusal:
        return [{"quantity": LONG_RUN, "model": LONG_RUN_MODEL, "measured": None, "why": on_one_line(str(refusal))}]
    bounds = {"predicted": long_run.eq_10(process), "low": low, "high": high, "measured": None}
    stated = {"quantity": LONG_RUN, "model": LONG_RUN_MODEL}
    return [stated | bounds | _inputs(process, process.struck_rate)]


def _law(experiment: Experiment) -> float:
    """Faults per second that the law expects over the whole window."""
    faults = experiment.fault_spec
    return faults.failure_rate * faults.duration_s / experiment.window_s


def _eq_10(process: MeasuredProcess, model: str, failures: int | None, rate: float, *, beside: float = 0.0) -> Row:
    """The row of a prediction by the model; its bounds are `beside` further out than those of the simulated runs."""
    try:
        found = _predict_run(process, failures, rate)
    except BadInput as refusal:
        return {"model": model, "why": on_one_line(str(refusal))} | _inputs(process, rate)
    predicted = {
        "predicted": found.predicted,
        "low": None if found.low is None else found.low - beside,
        "high": None if found.high is None else found.high + beside,
    }
    why = None if found.predicted is not None else "no checkpoint, or no recovery from a single fault, was measured"
    return {"model": model, "why": why} | predicted | _inputs(process, rate)


def _without_faults(process: MeasuredProcess) -> Row:
    """The model charges checkpoints in proportion to the window; by chance the window has one more or less of them.

    Beside the scatter of the costs the bounds allow for that: it is the only difference where all cost the same.
    """
    cost_s = mean(pd.Series(process.costs_s, dtype=float)) or 0.0
    return _eq_10(process, NO_FAULTS_MODEL, 0, 0.0, beside=cost_s / process.window_s)


def _predict_run(process: MeasuredProcess, failures: int | None, rate: float) -> Prediction:
    return predict_run(
        window_s=process.window_s,
        interval_s=process.interval_s,
        checkpoint_costs_s=process.costs_s,
        recovery_times_s=process.recoveries_s,
        hop_delay_s=process.hop_delay_s,
        depth=process.depth,
        failures=failures,
        failure_rate=rate,
        seed=SEED,
    )


def _inputs(process: MeasuredProcess, rate: float) -> Row:
    return {
        "failure_rate": rate,
        "checkpoint_cost_s": mean(pd.Series(process.costs_s, dtype=float)),
        "recovery_time_s": mean(pd.Series(process.recoveries_s, dtype=float)),
        "interval_s": process.interval_s,
        "hop_delay_s": process.hop_delay_s,
        "depth": process.depth,
    }


def _recoveries(process: MeasuredProcess, replay: RunReplay) -> list[Row]:
    """One row for every fault that began an outage, measured or replayed: what it took by both, and the difference."""
    measured = {outage.fault: outage for outage in process.ledger.outages}
    means = [each.mean(axis=0) for each in (replay.down_s, replay.warm_up_s, replay.timed.lost_s)]
    found: list[Row] = []
    for strike, *model in zip(replay.strikes, *means, strict=True):
        outage = measured.get(strike.fault)
        seen = {name: getattr(outage, name) if outage else 0.0 for name in PARTS}
        replayed = {f"replayed_{name}": float(value) for name, value in zip(PARTS, model, strict=True)}
        if any((*seen.values(), *replayed.values())):
            told = {"fault": strike.fault, "struck_s": strike.struck_s} | seen | replayed
            found.append(told | {"difference_s": sum(seen.values()) - sum(replayed.values())})
    return found


def _useful_time(run: Run, process: MeasuredProcess, replay: RunReplay) -> list[Row]:
    """Useful time since the window opened, at whole seconds: measured by the ledger, and replayed."""
    step = max(1, round(process.window_s / MOST_POINTS))
    seconds = np.arange(0.0, int(process.window_s) + 1, step)
    ledger = run.table("ledger").sort_values("start_ns")
    useful_s = ledger["seconds"].where(ledger["class"].isin(KEPT_CLASSES), 0.0).cumsum()
    ends_s = (ledger["end_ns"].astype("int64") - process.start_ns) / 1e9
    measured = np.interp(seconds, np.append(0.0, ends_s), np.append(0.0, useful_s.astype(float)))
    curves = zip(seconds.tolist(), measured.tolist(), replay.timed.useful_by(seconds).tolist(), strict=True)
    return [dict(zip(("second", "measured_s", "replayed_s"), values, strict=True)) for values in curves]
