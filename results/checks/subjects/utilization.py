"""Measured utilization agrees with its prediction, with its second estimate, and eq. 10 with its own simulation."""

from __future__ import annotations

import pandas as pd

from experiments.spec import Experiment
from experiments.wording import significant, told_apart
from models.uncertainty import FEWEST_SAMPLES
from results.checks.check import ASKED_OF, Check, has_faults, is_replayed, saturates
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, between
from results.summary.findings import LONG_RUN, REPLAY_MODEL, judged_utilization, took_effect

JUDGED, OF_LONG_RUN = ("measured", "at_least", "at_most", "predicted"), ("predicted", "low", "high")
MANY_FAULTS, FEW_FAULTS_FACTOR = 20, 2.0  # with fewer faults single recoveries scatter more: twice the tolerance


def predicted_utilization(evidence: Evidence) -> pd.DataFrame:
    """Return the prediction that the run is judged by, as one row with `measured`, `predicted`, `low` and `high`."""
    faults = evidence.table("faults")
    row = judged_utilization(evidence.rows("predictions", "table predictions has no row"), faults)
    if row is None:
        raise NotEnough("no utilization was predicted for this run")
    if pd.isna(row["measured"]):
        raise NotEnough("there is no measurement to compare the prediction with")
    if not pd.isna(row["why"]):
        raise NotEnough(row["why"])
    if row[["predicted", "low", "high"]].isna().any():
        also = f"with faults also {FEWEST_SAMPLES} recoveries that no second fault disturbed"
        raise NotEnough(f"the prediction has no interval: that needs {FEWEST_SAMPLES} checkpoints, and {also}")
    return row.to_frame().T.astype(dict.fromkeys(("measured", "predicted", "low", "high"), "float64"))


def long_run(evidence: Evidence) -> pd.DataFrame:
    """Return one row: eq. 10 with the inputs of this run, and its distances from the bounds of its simulated mean."""
    rows = evidence.rows("predictions", "table predictions has no row")
    found = rows[rows["quantity"] == LONG_RUN]
    if found.empty or found[["predicted", "low", "high"]].isna().any(axis=None):
        raise NotEnough("eq. 10 was not simulated: there were too few faults, checkpoints or recoveries")
    row = found.iloc[[0]][["predicted", "low", "high"]].astype("float64")
    return row.assign(above_low=row["predicted"] - row["low"], below_high=row["high"] - row["predicted"])


def allowed_utilization(evidence: Evidence) -> tuple[float, float]:
    """Within which bounds the measured utilization must lie.

    A replay knows when the faults struck: what is left to chance shrinks with their number, so it is held to a
    tolerance. Without faults the bounds are those of the prediction, which are narrow.
    """
    row = predicted_utilization(evidence).iloc[0]
    if row["model"] != REPLAY_MODEL:
        return float(row["low"]), float(row["high"])
    tolerance = tolerated(len(took_effect(evidence.table("faults"))), evidence.experiment)
    return float(row["predicted"]) - tolerance, float(row["predicted"]) + tolerance


def tolerated(faults: int, experiment: Experiment) -> float:
    """How far measured and replayed utilization may lie apart."""
    return experiment.tolerances.utilization * (1.0 if faults >= MANY_FAULTS else FEW_FAULTS_FACTOR)


def both_estimates(evidence: Evidence) -> pd.DataFrame:
    """Return one row with the two estimates of utilization and their distance."""
    run = evidence.the_run()
    if pd.isna(run["utilization_by_records"]):
        raise NotEnough("there is no second estimate: no undisturbed batch in the window gave a service rate")
    if pd.isna(run["utilization"]):
        raise NotEnough("the ledger gave no utilization")
    by_time, by_records = float(run["utilization"]), float(run["utilization_by_records"])
    return pd.DataFrame({"by_time": [by_time], "by_records": [by_records], "distance": [abs(by_time - by_records)]})


def _measured_utilization(evidence: Evidence) -> pd.DataFrame:
    """Return the row of `predicted_utilization` with `at_least` and `at_most`, within which `measured` must lie."""
    low, high = allowed_utilization(evidence)
    return predicted_utilization(evidence).assign(at_least=low, at_most=high)


def _expected_utilization(evidence: Evidence) -> str:
    frame = _measured_utilization(evidence)
    _, low, high, predicted = _figures(frame, *JUDGED)
    return f"{low} to {high} ({frame['model'].iat[0]}: {predicted})"


def _figures(frame: pd.DataFrame, *columns: str) -> list[str]:
    """The figures of the row in these columns; the first one is held against the others."""
    return told_apart(*frame.iloc[0][list(columns)])


CHECKS: tuple[Check, ...] = (
    Check(
        name="utilization.predicted",
        table="predictions",
        subject=_measured_utilization,
        rules=lambda evidence: [between("measured", *allowed_utilization(evidence))],
        observed=lambda frame: f"measured {_figures(frame, *JUDGED)[0]}",
        expected=_expected_utilization,
        asks="measured and replayed utilization agree (`tolerances.utilization`); without faults, measured and modelled"
        " utilization agree",
        asked_of="no faults, or at least 3 expected faults if the model describes the experiment",
        applies=lambda experiment: not has_faults(experiment) or is_replayed(experiment),
    ),
    Check(
        name="utilization.long_run",
        table="predictions",
        subject=long_run,
        rules=lambda evidence: [between("above_low", 0, None), between("below_high", 0, None)],
        observed=lambda frame: f"eq. 10 gives {_figures(frame, *OF_LONG_RUN)[0]}",
        expected=lambda evidence: (
            f"{' to '.join(_figures(long_run(evidence), *OF_LONG_RUN)[1:])} by simulating its process"
        ),
        asks="eq. 10 is within 5 standard errors of the simulated mean of its own process",
        asked_of=ASKED_OF[is_replayed],
        applies=is_replayed,
    ),
    Check(
        name="utilization.estimates_agree",
        table="runs",
        subject=both_estimates,
        rules=lambda evidence: [between("distance", 0, evidence.experiment.tolerances.estimates)],
        observed=lambda frame: (
            f"{significant(frame['by_time'].iat[0])} by time, {significant(frame['by_records'].iat[0])} by records"
        ),
        expected=lambda evidence: f"equal within {evidence.experiment.tolerances.estimates:g}",
        asks="utilization by time and by records agree (`tolerances.estimates`)",
        asked_of=ASKED_OF[saturates],
        applies=saturates,
    ),
)
