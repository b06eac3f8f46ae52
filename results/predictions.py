"""Predicts a run's utilization from the parameters measured in it, and writes the table `predictions`."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from experiments.spec import Experiment
from models.uncertainty import Prediction, predict_run
from results.findings import NO_FAULTS_MODEL, PLANNED_FAULTS_MODEL, UNDESCRIBED_MODEL, took_effect
from results.schema import TABLES
from results.store import Run

LAW_MODEL = "eq. 10, failure law"
SEED = 20_190
SLACK_NS = 500_000_000  # a batch that is being committed when its host dies ends before the outage begins


def write_predictions(run: Run, experiment: Experiment) -> pd.DataFrame:
    """Predict at the rate of the plan (its faults over the window) and at the rate of the law that it was drawn from.

    The faults that count are those that struck a host that was up. The recovery time is detect + restart of the
    outages that no further fault disturbed. A run with faults that lose no work is not described by the model, so its
    one row has no prediction.
    """
    row = run.table("runs").iloc[0]
    checkpoints, ledger, faults = (run.table(name) for name in ("checkpoints", "ledger", "faults"))
    inside = checkpoints[checkpoints["in_window"] & (checkpoints["records"] > 0)]
    struck_ns = took_effect(faults)["actual_ns"].astype(int).tolist()
    struck = len(struck_ns)
    inputs = {
        "window_s": float(row["window_s"]),
        "interval_s": _interval_s(inside, experiment),
        "checkpoint_costs_s": inside["checkpoint_s"].astype(float).tolist(),
        "recovery_times_s": _recovery_times_s(ledger, struck_ns),
        "hop_delay_s": _mean(inside["hop_delay_s"]) or 0.0,
        "depth": round(_mean(inside["stages"]) or 1),
    }
    cases = [(PLANNED_FAULTS_MODEL if struck else NO_FAULTS_MODEL, struck, struck / inputs["window_s"])]
    if experiment.faults.can_fail:
        cases.append((LAW_MODEL, None, _law(experiment)))
    found = [_row(name, count, rate, inputs, row["utilization"]) for name, count, rate in cases]
    if not all(kind.loses_work for kind in experiment.faults.kinds):
        found = [{"quantity": "utilization", "model": UNDESCRIBED_MODEL, "measured": float(row["utilization"])}]
    table = pa.Table.from_pylist(found, schema=TABLES["predictions"])
    run.write_table("predictions", table)
    return table.to_pandas()


def _law(experiment: Experiment) -> float:
    """Faults per second that the law expects over the whole window."""
    faults = experiment.fault_spec
    return faults.failure_rate * faults.duration / experiment.window_s


def _recovery_times_s(ledger: pd.DataFrame, struck_ns: list[int]) -> list[float]:
    """Detect + restart, warm-up included, of every outage that a single fault made and that led to useful work."""
    at_work = set(ledger.loc[ledger["class"] == "useful", "start_ns"])
    down = ledger[ledger["class"].isin(["detect", "restart"]) & ledger["fault"].notna()]
    spans = {"start_ns": ("start_ns", "min"), "end_ns": ("end_ns", "max"), "seconds": ("seconds", "sum")}
    outages = down.groupby("fault").agg(**spans)
    return [
        float(outage.seconds)
        for outage in outages.itertuples()
        if outage.end_ns in at_work
        and sum(outage.start_ns - SLACK_NS <= at_ns < outage.end_ns for at_ns in struck_ns) == 1
    ]


def _interval_s(inside: pd.DataFrame, experiment: Experiment) -> float:
    """The interval as it was run: the mean time from the start of one undisturbed batch to that of the next.

    Spark aligns its triggers to multiples of the set interval and starts at once after a batch that overran it.
    """
    batches = inside.sort_values("batch")
    follows = batches["undisturbed"] & batches["undisturbed"].shift(-1, fill_value=False)
    follows &= batches["batch"].diff(-1) == -1
    periods_s = (batches["started_ns"].shift(-1) - batches["started_ns"])[follows].astype(float) / 1e9
    return _mean(periods_s) or experiment.engine.checkpoint_interval_s


def _row(model: str, failures: int | None, rate: float, inputs: dict, measured: float) -> dict[str, object]:
    prediction = predict_run(**inputs, failures=failures, failure_rate=rate, seed=SEED)
    costs, recoveries = inputs["checkpoint_costs_s"], inputs["recovery_times_s"]
    return {
        "quantity": "utilization",
        "model": model,
        "measured": float(measured),
        **_numbers(prediction),
        "failure_rate": rate,
        "checkpoint_cost_s": _mean(pd.Series(costs, dtype=float)),
        "recovery_time_s": _mean(pd.Series(recoveries, dtype=float)),
        "interval_s": inputs["interval_s"],
        "hop_delay_s": inputs["hop_delay_s"],
        "depth": inputs["depth"],
    }


def _numbers(prediction: Prediction) -> dict[str, float | None]:
    return {"predicted": prediction.predicted, "low": prediction.low, "high": prediction.high}


def _mean(values: pd.Series) -> float | None:
    known = values.dropna()
    return float(known.mean()) if len(known) else None
