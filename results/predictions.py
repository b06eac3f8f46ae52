"""Predicts a run's utilization from the parameters measured in it, and writes the table `predictions`."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.spec import Experiment
from models.uncertainty import Prediction, predict_run
from results.findings import NO_FAULTS_MODEL, PLANNED_FAULTS_MODEL
from results.schema import TABLES
from results.store import Run

LAW_MODEL = "eq. 10, failure law"
SEED = 20_190


def write_predictions(run: Run, experiment: Experiment) -> pd.DataFrame:
    """Predict at the rate of the plan (its faults over the window) and at the rate of the law that it was drawn from.

    The faults that count are those that struck a host that was up. The recovery time is detect + restart of the
    recoveries that no further fault disturbed.
    """
    row = run.table("runs").iloc[0]
    checkpoints, recoveries, faults = (run.table(name) for name in ("checkpoints", "recoveries", "faults"))
    inside = checkpoints[checkpoints["in_window"] & (checkpoints["records"] > 0)]
    undisturbed = recoveries[recoveries["faults"] == 1].dropna(subset=["detect_s", "restart_s"])
    recovery_times = (undisturbed["detect_s"] + undisturbed["restart_s"]).astype(float).tolist()
    struck = int((~faults["absorbed"] & faults["actual_ns"].notna()).sum())
    inputs = {
        "window_s": float(row["window_s"]),
        "interval_s": _interval_s(inside, experiment),
        "checkpoint_costs_s": inside["checkpoint_s"].astype(float).tolist(),
        "recovery_times_s": recovery_times,
        "hop_delay_s": _mean(inside["hop_delay_s"]) or 0.0,
        "depth": round(_mean(inside["stages"]) or 1),
    }
    cases = [(PLANNED_FAULTS_MODEL if struck else NO_FAULTS_MODEL, struck, struck / inputs["window_s"])]
    if law := experiment.fault_spec.failure_rate if experiment.faults.processes else 0.0:
        cases.append((LAW_MODEL, None, law))
    found = [_row(name, count, rate, inputs, row["utilization"]) for name, count, rate in cases]
    table = pa.Table.from_pylist(found, schema=TABLES["predictions"])
    pq.write_table(table, run.tables / "predictions.parquet")
    return table.to_pandas()


def _interval_s(inside: pd.DataFrame, experiment: Experiment) -> float:
    """The interval as it was run: a batch that overruns the trigger interval makes the interval longer."""
    longest = experiment.engine.checkpoint_interval_s
    return max(longest, _mean(inside["duration_s"]) or longest)


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
