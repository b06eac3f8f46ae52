"""Faults struck as planned, on time and proved, were healed, and follow their laws."""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.fault_kinds import FaultKind
from experiments.wording import counted, significant
from results.checks.check import ASKED_OF, Check, has_faults
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, Rule, between, in_set, present
from results.tables.schema import FaultOutcome

HOST_START_S = 30.0  # a healed host counts as back when its worker runs again, which takes it some seconds
LEAST_CHANCE = 1e-4  # a sound plan fails one such test in ten thousand
ON_TIME_SHARE = 0.99  # of the faults


def effective_faults(evidence: Evidence) -> pd.DataFrame:
    """Return the planned faults that could strike.

    Those that were absorbed or withheld could not; one that is missing should have, and has no lateness.
    """
    faults = evidence.rows("faults", "the run had no planned fault")
    faults = faults[~faults["outcome"].isin([FaultOutcome.ABSORBED, FaultOutcome.WITHHELD])].copy()
    if faults.empty:
        raise NotEnough("every planned fault was absorbed or withheld")
    return faults


def heals(evidence: Evidence) -> pd.DataFrame:
    """Return the faults that could strike, with `healed` and `joined`.

    The injector undoes every fault: when it is due, or when the run ends. What died must also have its place again by
    itself: a host once the Spark master has registered it, broker and master once they answer. Nobody waits for that
    if it was healed shortly before the window ended, and a host that is struck again soon may not get so far.
    """
    faults, end_ns = effective_faults(evidence), evidence.the_run()["window_end_ns"]
    faults["healed"] = faults["healed_ns"].notna()
    joins = faults["kind"].map(lambda kind: FaultKind(kind).must_come_back)
    too_late = (faults["healed_ns"] + int(HOST_START_S * 1e9) > end_ns).fillna(False)
    again = faults.apply(_struck_again, axis=1, among=faults)
    faults["joined"] = faults["joined_ns"].notna() | too_late | ~joins | again
    return faults


def _struck_again(fault: pd.Series, among: pd.DataFrame) -> bool:
    """Whether one of a fault's hosts, or its service, was struck again before it had the time to join."""
    if pd.isna(fault["healed_ns"]):
        return False
    later = among[(among["actual_ns"] > fault["actual_ns"]).fillna(False)]
    soon = later[later["actual_ns"] < fault["healed_ns"] + int(HOST_START_S * 1e9)]
    return any(_places(fault) & _places(other) for _, other in soon.iterrows())


def _places(fault: pd.Series) -> set[tuple[str, str | None]]:
    """What a fault strikes: each host, or on the gateway the service, of which there are several."""
    service = FaultKind(fault["kind"]).service
    return {(target, service) for target in fault["targets"].split(",")}


def _on_time(evidence: Evidence) -> list[Rule]:
    limit_s = evidence.experiment.lateness_limit_s
    within = between("lateness_s", -limit_s, limit_s, share=ON_TIME_SHARE)
    return [present("actual_ns"), present("lateness_s"), within]


def _lateness(frame: pd.DataFrame) -> str:
    """How far strikes were off. The p99 is that of the fault by which the rule decides, not a value between two."""
    off_s = frame["lateness_s"].dropna().astype(float).abs()
    if off_s.empty:
        return f"none struck, {counted(len(frame), 'fault')}"
    p99_s = np.quantile(off_s, ON_TIME_SHARE, method="inverted_cdf")
    at_most = f"{significant(off_s.max() * 1e3)} at most"
    return f"{significant(p99_s * 1e3)} ms off at p99, {at_most}, {counted(len(frame), 'fault')}"


def fit_to_law(evidence: Evidence) -> pd.DataFrame:
    """Return the comparisons of the plan with its laws, each with the probability that chance does as badly."""
    fits = evidence.table("fault_fit")
    fits = fits[fits["p_value"].notna()]
    if fits.empty:
        raise NotEnough("table fault_fit has no comparison of the plan with a law")
    return fits


def missing_faults(evidence: Evidence) -> pd.DataFrame:
    """Return one row: of how many planned strikes (`samples`) there is no trace in the injector's journal."""
    fits = evidence.table("fault_fit")
    fits = fits[fits["test"] == "missing"]
    if not fits["samples"].sum():
        raise NotEnough("the run had no planned fault")
    return fits


CHECKS: tuple[Check, ...] = (
    Check(
        name="faults.on_time",
        table="faults",
        subject=effective_faults,
        rules=_on_time,
        observed=_lateness,
        expected=lambda evidence: f"{evidence.experiment.lateness_limit_s * 1e3:g} ms at p99",
        asks="at p99, strikes differ from their planned time by at most the driver's limit (`tolerances.lateness_s`)",
        asked_of=ASKED_OF[has_faults],
        applies=has_faults,
    ),
    Check(
        name="faults.proved",
        table="faults",
        subject=effective_faults,
        rules=lambda evidence: [
            present("proved_ns"),
            present("violations"),
            in_set("violations", 0),
        ],
        observed=lambda frame: (
            f"{frame['proved_ns'].notna().sum()} of {len(frame)} proved, {frame['violations'].sum()} contradictions"
        ),
        expected=lambda evidence: "all proved, nothing contradicts it (survivors, open ports, delivered packets, ...)",
        asks="every fault that took effect is proved, and nothing contradicts a proof",
        asked_of=ASKED_OF[has_faults],
        applies=has_faults,
    ),
    Check(
        name="faults.healed",
        table="faults",
        subject=heals,
        rules=lambda evidence: [in_set("healed", True), in_set("joined", True), in_set("heal_violations", 0)],
        observed=lambda frame: (
            f"{frame['healed_ns'].notna().sum()} of {len(frame)} undone, "
            f"{frame['joined_ns'].notna().sum()} joined again by themselves, "
            f"{frame['heal_violations'].sum()} contradictions"
        ),
        expected=lambda evidence: "all undone; lost hosts, broker and master joined again if there was time for it",
        asks=(
            "every fault was undone, at the latest when the run ended; lost hosts, broker and master joined again, "
            f"unless they were struck again or the window ended less than {HOST_START_S:g} s after their heal"
        ),
        asked_of=ASKED_OF[has_faults],
        applies=has_faults,
    ),
    Check(
        name="faults.follow_their_law",
        table="fault_fit",
        subject=fit_to_law,
        rules=lambda evidence: [between("p_value", LEAST_CHANCE, None)],
        observed=lambda frame: f"p {significant(frame['p_value'].min())} in the worst of {len(frame)} tests",
        expected=lambda evidence: f"p {LEAST_CHANCE:g} or more: the plan could have come from its laws",
        asks="the plan could have come from its laws: p is at least .0001 in every test",
        asked_of="a fault process that can be compared with its law",
        applies=lambda experiment: any(process.shows_its_law for process in experiment.faults.processes),
    ),
    Check(
        name="faults.as_planned",
        table="fault_fit",
        subject=missing_faults,
        rules=lambda evidence: [present("statistic"), in_set("statistic", 0.0)],
        observed=lambda frame: f"{frame['statistic'].sum():.0f} of {frame['samples'].sum()} planned strikes missing",
        expected=lambda evidence: "every planned strike injected, absorbed or withheld",
        asks="every planned strike was injected, absorbed or withheld",
        asked_of=ASKED_OF[has_faults],
        applies=has_faults,
    ),
)
