"""The ledger covers the window exactly once, the clock was steady, and a saturating load leaves no idle time."""

from __future__ import annotations

import pandas as pd

from experiments.wording import percent, significant
from results.checks.check import ASKED_OF, Check, is_to_be_busy
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, between, in_set
from results.predictions.replays import MOST_IDLE
from results.tables.schema import LedgerClass

SATURATED = "load.saturated"
MOST_STEP_S = 0.005  # half of what a fault may be off; NTP's slewing is none, since it moves both clocks alike


def ledger_sum(evidence: Evidence) -> pd.DataFrame:
    """Return one row: seconds in the ledger, seconds in the window, and their relative difference."""
    summed = float(evidence.rows("ledger", "the ledger has no segments")["seconds"].sum())
    run = evidence.the_run()
    window = (run["window_end_ns"] - run["window_start_ns"]) / 1e9
    if window <= 0:
        raise NotEnough("the measurement window is empty")
    return pd.DataFrame({"sum_s": [summed], "window_s": [window], "relative_gap": [abs(summed - window) / window]})


def ledger_joints(evidence: Evidence) -> pd.DataFrame:
    """Return one row per boundary of ledger segments, window edges included: `gap_ns`, negative where they overlap."""
    segments = evidence.rows("ledger", "the ledger has no segments").sort_values(["start_ns", "end_ns"])
    run = evidence.the_run()
    ends = [run["window_start_ns"], *segments["end_ns"]]
    starts = [*segments["start_ns"], run["window_end_ns"]]
    return pd.DataFrame({"gap_ns": [start - end for end, start in zip(ends, starts, strict=True)]})


def idle_share(evidence: Evidence) -> pd.DataFrame:
    """Return one row: the share of the ledger's time in which the query waited for input."""
    segments = evidence.rows("ledger", "the ledger has no segments")
    idle_s = segments.loc[segments["class"] == LedgerClass.IDLE, "seconds"].sum()
    return pd.DataFrame({"idle": [float(idle_s / segments["seconds"].sum())]})


def clock(evidence: Evidence) -> pd.DataFrame:
    """Return one row: by how much the wall clock was moved while the window was measured [s]."""
    moved_s = evidence.the_run()["clock_step_s"]
    if pd.isna(moved_s):
        raise NotEnough("there is no sample of the gateway's clock before, in or after the window")
    return pd.DataFrame({"clock_step_s": [float(moved_s)]})


CHECKS: tuple[Check, ...] = (
    Check(
        name="ledger.adds_up",
        table="ledger",
        subject=ledger_sum,
        rules=lambda evidence: [between("relative_gap", 0, evidence.experiment.tolerances.ledger_share)],
        observed=lambda frame: (
            f"{significant(abs(frame['sum_s'].iat[0] - frame['window_s'].iat[0]))} s off in a window of"
            f" {significant(frame['window_s'].iat[0])} s"
        ),
        expected=lambda evidence: f"equal within {percent(evidence.experiment.tolerances.ledger_share)}",
        asks="the classes of the ledger add up to the window (`tolerances.ledger_share`)",
    ),
    Check(
        name="ledger.contiguous",
        table="ledger",
        subject=ledger_joints,
        rules=lambda evidence: [in_set("gap_ns", 0)],
        observed=lambda frame: f"{(frame['gap_ns'] > 0).sum()} gaps, {(frame['gap_ns'] < 0).sum()} overlaps",
        expected=lambda evidence: "0 gaps, 0 overlaps",
        asks="the stretches of the ledger have no gaps and no overlaps",
    ),
    Check(
        name=SATURATED,
        table="ledger",
        subject=idle_share,
        rules=lambda evidence: [between("idle", 0, MOST_IDLE)],
        observed=lambda frame: f"idle for {percent(frame['idle'].iat[0])} of the window",
        expected=lambda evidence: f"at most {MOST_IDLE:.0%}",
        asks="a saturating load leaves the query idle for at most 5 % of the window",
        asked_of=ASKED_OF[is_to_be_busy],
        applies=is_to_be_busy,
    ),
    Check(
        name="clock.steady",
        table="runs",
        subject=clock,
        rules=lambda evidence: [between("clock_step_s", 0, MOST_STEP_S)],
        observed=lambda frame: f"the wall clock was moved by {significant(frame['clock_step_s'].iat[0] * 1e3)} ms",
        expected=lambda evidence: (
            f"at most {MOST_STEP_S * 1e3:g} ms, since the times in all tables are by the wall clock"
        ),
        asks="the wall clock moved by at most 5 ms against the monotonic clock",
    ),
)
