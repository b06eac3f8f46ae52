"""Output logs have as many windows open as the model says."""

from __future__ import annotations

import pandas as pd

from experiments.spec import Experiment
from experiments.wording import percent
from experiments.workloads.cec_prices import CecPricesSpec
from models.open_windows import open_windows
from results.checks.check import Check, Parting, keeps_output_log
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, between

TOLERANCE = 0.01
DEVIATIONS = 4  # standard deviations of the number of open windows, if they are more than the tolerance
FEWEST_ITEMS = 1000  # with fewer, hardly a window is closed if windows are large: chance exceeds 4 deviations too often
WITHIN = f"within {TOLERANCE:.0%} or {DEVIATIONS} standard deviations, whichever is more"


def described(experiment: Experiment) -> bool:
    """Whether the model knows the workload's windows, and chance does not prevail."""
    workload = experiment.workload
    return keeps_output_log(experiment) and isinstance(workload, CecPricesSpec) and workload.items >= FEWEST_ITEMS


def reported(evidence: Evidence) -> pd.DataFrame:
    """The reports of output logs; raises `NotEnough` unless each partition with a log has reported it."""
    rows = evidence.rows("output_logs", "no partition has reported its log")
    found, partitions = rows["partition"].nunique(), evidence.experiment.engine.partitions
    if found != partitions:
        raise NotEnough(f"{found} of {partitions} partitions have reported their logs")
    return rows


def windows(evidence: Evidence) -> pd.DataFrame:
    """Return one row, the last report with all partitions: `at_ns`, `open_windows`, `predicted`, `off` and `allowed`,
    both relative to `predicted`, and `share`, the first of these by the second.

    The window of each of K items is open with probability p = predicted / K, so the standard deviation of their number
    is sqrt(K p (1 - p)). For windows of 2 records that is sqrt(K) / 2: 1 % of 10,000 / 2, which one run in three
    exceeds.
    """
    workload = evidence.experiment.workload
    if not isinstance(workload, CecPricesSpec):
        raise NotEnough("the workload has no count windows")
    rows, partitions = reported(evidence), evidence.experiment.engine.partitions
    whole = rows.groupby("at_ns").filter(lambda of_one: len(of_one) == partitions)
    if whole.empty:
        raise NotEnough("no report covers all partitions")
    last = whole[whole["at_ns"] == whole["at_ns"].max()]
    found, records = int(last["open_windows"].sum()), int(last["records"].sum())
    predicted = open_windows(workload.items, workload.window_records, records)
    if not predicted:
        raise NotEnough("no window stays open")
    deviation = (predicted * (1 - predicted / workload.items)) ** 0.5
    off, allowed = abs(found / predicted - 1), max(TOLERANCE, DEVIATIONS * deviation / predicted)
    numbers = {"open_windows": found, "predicted": predicted, "off": off, "allowed": allowed, "share": off / allowed}
    return pd.DataFrame([numbers]).assign(at_ns=last["at_ns"].iat[0])


def _last_report(report: pd.Series) -> str:
    return f"in the last report {report['open_windows']:,.0f} windows were open instead of {report['predicted']:,.0f}"


CHECKS: tuple[Check, ...] = (
    Check(
        name="output_logs.open_windows",
        table="output_logs",
        subject=windows,
        rules=lambda evidence: [between("share", 0, 1)],
        observed=lambda frame: (
            f"{frame['open_windows'].iat[0]:,} open, {percent(frame['off'].iat[0])} off,"
            f" {percent(frame['allowed'].iat[0])} is allowed"
        ),
        expected=lambda evidence: f"as many as the model gives for the records that were read, {WITHIN}",
        asks="in the last report, as many windows are open as the model gives for the number of items, the window and"
        f" the records that were read, {WITHIN}",
        asked_of=f"protocol `output-log`, workload `cec-prices` with {FEWEST_ITEMS:,} items or more",
        applies=described,
        parting=Parting("share", _last_report),
    ),
)
