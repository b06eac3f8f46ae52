"""Recoveries are there for all that took work, come to their end, and agree with their moments and with the ledger."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from experiments.fault_kinds import FaultKind
from experiments.recovery_modes import RecoveryMode
from results.checks.check import ASKED_OF, Check, has_faults
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, Rule, between, in_set
from results.checks.subjects.tables import row_count, value_rules
from results.summary.findings import BETWEEN, FAILURE_CLASSES, PHASES, took_effect

RESTART_S = 60.0  # from the return of the last host until the query works again: twice as long as usual
ROUNDING_S = 0.01  # of sums
NS = 1e9

Floats = npt.NDArray[np.float64]


def recoveries(evidence: Evidence) -> pd.DataFrame:
    """Return the recoveries with these columns, or of a run that needed none one row: `outage_s`, the ledger's seconds
    of outages.

    ended         whether the query worked again, or had too little time for that before the window ended
    phases_off_s  how far a phase is from what lies between its two moments, at most; inf if one is missing
    left_out      how many faults that lose work took effect in none of the recoveries; the same in all rows; only where
                  every slot has a partition (`_all_work`)
    ledger_off_s  how much of the time from death to ready is no failure in the ledger; only where an outage stops the
                  whole query (`_stops`), and of recoveries from one fault

    A run needs none where no fault that took effect loses work by itself, and the query went on through those that did.
    """
    found = evidence.table("recoveries")
    struck = took_effect(evidence.table("faults"))
    if not found.empty:
        told = {"ended": _ended(found, struck, evidence), "phases_off_s": _phases_off_s(found)}
        told |= {"left_out": _left_out(found, struck, evidence)} if _all_work(evidence) else {}
        told |= {"ledger_off_s": _ledger_off_s(found, evidence)} if _stops(evidence) else {}
        return found.assign(**told)
    if struck.empty:
        raise NotEnough("no fault took effect: there was nothing to recover from")
    if any(FaultKind(kind).loses_work for kind in struck["kind"]):
        raise NotEnough("table recoveries has no rows, but a fault that loses work took effect")
    ledger = evidence.rows("ledger", "the ledger has no segments")
    return pd.DataFrame({"outage_s": [float(ledger.loc[ledger["class"].isin(FAILURE_CLASSES), "seconds"].sum())]})


def _ended(found: pd.DataFrame, struck: pd.DataFrame, evidence: Evidence) -> pd.Series:
    """Whether the query worked again after each outage, or had too little time for that before the window ended.

    Only the last outage can have too little: others ended before the next began. It lasts until the last of the faults
    that struck during it is over.
    """
    last_ns = max([found["death_ns"].max(), *struck["actual_ns"].dropna()])
    due_ns = last_ns + int((evidence.experiment.faults.longest_heal_s + RESTART_S) * NS)
    ended = found["ready_ns"].notna()
    ended.iloc[-1] |= due_ns > evidence.the_run()["window_end_ns"]
    return ended


def _phases_off_s(found: pd.DataFrame) -> Floats:
    off = []
    for phase, (before, after) in zip(PHASES, pairwise(BETWEEN), strict=True):
        lasted_s = _numbers(found[f"{after}_ns"].astype("Int64") - found[f"{before}_ns"].astype("Int64")) / NS
        told_s = _numbers(found[f"{phase}_s"])
        off.append(np.where(np.isnan(lasted_s) & np.isnan(told_s), 0.0, np.abs(lasted_s - told_s)))
    return np.nan_to_num(np.max(off, axis=0), nan=np.inf)


def _all_work(evidence: Evidence) -> bool:
    """Whether every slot has a partition: a fault that hits only slots without one takes no work."""
    engine = evidence.experiment.engine
    return not engine.standby_run and not engine.recovers_in_parts


def _stops(evidence: Evidence) -> bool:
    """Whether an outage stops the whole query."""
    return evidence.experiment.engine.recovery_run is RecoveryMode.QUERY


def _left_out(found: pd.DataFrame, struck: pd.DataFrame, evidence: Evidence) -> int:
    loses_work = np.array([FaultKind(kind).loses_work for kind in struck["kind"]], dtype=bool)
    struck_ns = _numbers(struck["actual_ns"])[loses_work]
    struck_ns = struck_ns[struck_ns < float(evidence.the_run()["window_end_ns"]), np.newaxis]
    death_ns, ready_ns = _numbers(found["death_ns"]), np.nan_to_num(_numbers(found["ready_ns"]), nan=np.inf)
    inside = (death_ns <= struck_ns) & (struck_ns <= ready_ns)
    return int((~inside.any(axis=1)).sum())


def _ledger_off_s(found: pd.DataFrame, evidence: Evidence) -> Floats:
    """NaN where several faults struck, or a batch without records came first: then work was done before the query was
    at its usual pace.

    A batch that is being committed when the fault strikes is useful to its end.
    """
    run, ledger = evidence.the_run(), evidence.rows("ledger", "the ledger has no segments")
    batches = evidence.rows("checkpoints", "no batch was committed")
    start_ns, end_ns = float(run["window_start_ns"]), float(run["window_end_ns"])
    death_ns = _numbers(found["death_ns"])[:, np.newaxis]
    began_ns, committed_ns = _numbers(batches["started_ns"]), _numbers(batches["completed_ns"])
    in_commit = (began_ns < death_ns) & (death_ns < committed_ns)
    begins_ns = np.maximum(death_ns[:, 0], np.where(in_commit, committed_ns, 0.0).max(axis=1)).clip(start_ns, end_ns)
    ready_ns = np.nan_to_num(_numbers(found["ready_ns"]), nan=end_ns).clip(begins_ns, end_ns)
    failed = ledger[ledger["class"].isin([each.value for each in FAILURE_CLASSES])]
    until_ns = np.minimum(_numbers(failed["end_ns"]), ready_ns[:, np.newaxis])
    inside_ns = (until_ns - np.maximum(_numbers(failed["start_ns"]), begins_ns[:, np.newaxis])).clip(min=0.0)
    off_s = np.abs(ready_ns - begins_ns - inside_ns.sum(axis=1)) / NS
    empty_ns = committed_ns[_numbers(batches["records"]) == 0]
    works_before = ((death_ns < empty_ns) & (empty_ns <= ready_ns[:, np.newaxis])).any(axis=1)
    return np.where(works_before | (_numbers(found["faults"]) > 1), np.nan, off_s)


def _numbers(values: pd.Series) -> Floats:
    """As floats, NaN where nothing was measured."""
    return values.astype("Float64").to_numpy(dtype=float, na_value=np.nan)


def _seen(frame: pd.DataFrame) -> str:
    return f"no recovery, {frame['outage_s'].iat[0]:g} s of outages" if "outage_s" in frame else row_count(frame)


def _rules(evidence: Evidence) -> list[Rule]:
    """On the recoveries, or on what stands for their absence."""
    if evidence.table("recoveries").empty:
        return [in_set("outage_s", 0.0)]
    rules = [*value_rules("recoveries"), in_set("ended", True), between("phases_off_s", 0, ROUNDING_S)]
    rules += [in_set("left_out", 0)] if _all_work(evidence) else []
    return [*rules, between("ledger_off_s", 0, ROUNDING_S)] if _stops(evidence) else rules


def _expected(evidence: Evidence) -> str:
    demands = ["no value missing or out of range", "each phase lasts from its moment to the next"]
    demands += ["each fault that loses work struck in a recovery"] if _all_work(evidence) else []
    demands += ["the ledger counts all of a recovery as failure"] if _stops(evidence) else []
    return "; ".join([*demands, "every outage has a recovery and an end"])


CHECKS: tuple[Check, ...] = (
    Check(
        name="recoveries.values",
        table="recoveries",
        subject=recoveries,
        rules=_rules,
        observed=_seen,
        expected=_expected,
        asks="no value is missing or out of range; each phase lasts from its moment to the next; each fault that loses"
        " work struck in a recovery, unless slots may be without a partition; with `engine.recovery: query`, the ledger"
        " counts the time from a single fault to ready as failure; the query worked again after each outage, unless"
        f" the window ended at most {RESTART_S:g} s after the last host returned; if there is no recovery, there is no"
        " outage",
        asked_of=ASKED_OF[has_faults],
        applies=has_faults,
    ),
)
