"""Tentative output is set apart from exact output, is corrected, and is as accurate as predicted."""

from __future__ import annotations

import pandas as pd

from experiments.spec import Experiment
from models.accuracy import predicted_by_fidelity
from results.checks.check import Check, has_oracle, is_tentative
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, between, in_set, present

MOST_APART = 0.05  # accuracy and output fidelity
OF_TENTATIVE_RUNS = "`engine.tentative`, with an oracle"
LACK = "no tentative output: no fault left input missing for long enough"


def judged_by_oracle(experiment: Experiment) -> bool:
    """Whether the experiment asks for tentative output that can be compared with exact output."""
    return is_tentative(experiment) and has_oracle(experiment)


def fidelity_describes(experiment: Experiment) -> bool:
    """Whether output fidelity predicts the accuracy of what the query puts out."""
    return judged_by_oracle(experiment) and predicted_by_fidelity(experiment.workload)


def windows(evidence: Evidence) -> pd.DataFrame:
    """Return the windows with tentative output; raises `NotEnough` if there are none."""
    return evidence.rows("tentative", LACK)


def windows_with_results(evidence: Evidence) -> pd.DataFrame:
    """Return those that have exact results, too."""
    found = windows(evidence)
    found = found[found["exact"] > 0]
    if found.empty:
        raise NotEnough("no window with tentative output has exact results")
    return found


def predicted_windows(evidence: Evidence) -> pd.DataFrame:
    """Return those without the same input from beginning to end, with how far accuracy is from output fidelity."""
    found = windows_with_results(evidence)
    found = found[found["throughout"] & found["output_fidelity"].notna()]
    if found.empty:
        raise NotEnough("no window lacked the same input from its beginning to its end")
    return found.assign(apart=(found["accuracy"] - found["output_fidelity"]).abs())


CHECKS: tuple[Check, ...] = (
    Check(
        name="tentative.apart",
        table="tentative",
        subject=windows,
        rules=lambda evidence: [in_set("leaked", 0)],
        observed=lambda frame: (
            f"{frame['leaked'].sum():,} of {frame['emitted'].sum():,} tentative results in the exact output"
        ),
        expected=lambda evidence: "0",
        asks="no tentative result that the oracle does not have is in the exact output",
        asked_of=OF_TENTATIVE_RUNS,
        applies=judged_by_oracle,
    ),
    Check(
        name="tentative.corrected",
        table="tentative",
        subject=windows_with_results,
        rules=lambda evidence: [present("corrected_ns")],
        observed=lambda frame: f"{frame['corrected_ns'].notna().sum():,} of {len(frame):,} windows corrected",
        expected=lambda evidence: "all",
        asks="the exact results of every window with tentative output are out in the end",
        asked_of=OF_TENTATIVE_RUNS,
        applies=judged_by_oracle,
    ),
    Check(
        name="tentative.accuracy",
        table="tentative",
        subject=predicted_windows,
        rules=lambda evidence: [between("apart", 0, MOST_APART)],
        observed=lambda frame: (
            f"accuracy {frame['accuracy'].mean():.3f}, output fidelity {frame['output_fidelity'].mean():.3f}, "
            f"at most {frame['apart'].max():.3f} apart, {len(frame):,} windows"
        ),
        expected=lambda evidence: f"at most {MOST_APART:g} apart in every window",
        asks="accuracy is the output fidelity of what was missing, in windows that lacked it from beginning to end",
        asked_of="`engine.tentative`, with a query each result of which comes from one path through the dataflow",
        applies=fidelity_describes,
    ),
)
