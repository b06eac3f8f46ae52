"""Tentative output is kept apart from exact output, is corrected, and is as accurate as predicted."""

from __future__ import annotations

import pandas as pd

from experiments.spec import Experiment
from experiments.wording import significant
from models.accuracy import predicted_by_fidelity
from results.checks.check import Check, Parting, has_oracle, is_tentative
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, between, in_set, present
from results.checks.subjects.quality import closed_windows

WINDOW = ["window_start_ns", "window_end_ns"]
MOST_APART = 0.05  # accuracy and output fidelity
TELLING = 400  # distinct results: the standard deviation of a share of 400 is at most half of `MOST_APART`
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
    """Return a row for windows that lacked the same input from beginning to end, with how far the accuracy of them all
    together is from output fidelity. Windows that together have fewer results than `TELLING` are `left_out`.

    A single window has another accuracy by chance. The exact results of a window that is not final lack what lost
    partitions have left unread, so tentative output would have more of them than it should. Raises `NotEnough` if no
    window can be judged.
    """
    final = closed_windows(evidence)[[*WINDOW, "exact"]].rename(columns={"exact": "final"})
    found = windows_with_results(evidence).merge(final, on=WINDOW)
    found = found[found["final"] >= found["exact"]]  # a second can be final in part
    if found.empty:
        raise NotEnough("no window with tentative output is final")
    found = found[found["throughout"] & found["output_fidelity"].notna()]
    if found.empty:
        raise NotEnough("in no window was the same input missing from beginning to end")
    groups = [frame for _, frame in found.groupby("absent") if _told_apart(frame) >= TELLING]
    if not groups:
        raise NotEnough(f"the windows have too few results to show a difference of {MOST_APART:g}")
    together = pd.concat(map(_together, groups))
    apart = (together["accuracy"] - together["output_fidelity"]).abs()
    return together.assign(apart=apart, left_out=len(found) - together["windows"].sum())


def _told_apart(frame: pd.DataFrame) -> float:
    """The results of windows, those of overlapping ones by the time that is theirs alone."""
    spans = frame.sort_values("window_start_ns")[WINDOW]
    covered_ns = reached_ns = 0
    for start_ns, end_ns in spans.itertuples(index=False):
        covered_ns += max(0, end_ns - max(start_ns, reached_ns))
        reached_ns = max(reached_ns, end_ns)
    lengths_ns = (spans["window_end_ns"] - spans["window_start_ns"]).sum()
    return float(frame["exact"].sum() * (covered_ns / lengths_ns))


def _together(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for windows that lacked the same. It begins when that window begins which differs most from output
    fidelity, in the direction in which all of them together do."""
    sums = frame[["exact", "both"]].sum()
    more = (frame["both"] - frame["output_fidelity"] * frame["exact"]).astype(float)
    worst = (more if more.sum() > 0 else -more).argmax()
    one = frame.iloc[:1].assign(exact=sums["exact"], both=sums["both"], windows=len(frame))
    begins_ns = frame["window_start_ns"].iat[worst]
    return one.assign(accuracy=sums["both"] / sums["exact"], window_start_ns=begins_ns)


def _worst(windows: pd.Series) -> str:
    accuracy, fidelity = significant(windows["accuracy"]), significant(windows["output_fidelity"])
    told = f"windows that lacked {windows['absent']} have accuracy {accuracy} instead of {fidelity}"
    return f"{told}; the one that begins here differs most"


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
        asks="every tentative result that is in the exact output is in the oracle, too",
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
        asks="every window with tentative output has all of its exact results by the end of the run",
        asked_of=OF_TENTATIVE_RUNS,
        applies=judged_by_oracle,
    ),
    Check(
        name="tentative.accuracy",
        table="tentative",
        subject=predicted_windows,
        rules=lambda evidence: [between("apart", 0, MOST_APART)],
        observed=lambda frame: (
            f"accuracy {significant(frame['accuracy'].mean())}, "
            f"output fidelity {significant(frame['output_fidelity'].mean())}, "
            f"at most {significant(frame['apart'].max())} apart, {frame['windows'].sum():,} windows judged, "
            f"{frame['left_out'].iloc[0]:,} left out"
        ),
        expected=lambda evidence: f"at most {MOST_APART:g} apart, over all windows that lacked the same input",
        asks="over all final windows that lacked the same input from beginning to end, accuracy agrees with the"
        f" predicted output fidelity; if these windows have fewer than {TELLING} results together, they are left out",
        asked_of="`engine.tentative`, and a query of which each result comes from one path through the dataflow",
        applies=fidelity_describes,
        parting=Parting("apart", _worst),
    ),
)
