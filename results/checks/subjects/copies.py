"""Active copies cost no more than their primaries."""

from __future__ import annotations

from typing import Any

import pandas as pd

from experiments.wording import significant
from results.checks.check import ASKED_OF, Check, Parting, has_copies
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, between

MOST = 1.2  # times the CPU time of a primary: a copy does the same, but for sending and checkpoints
FEWEST_CPU_S = 1.0  # with less CPU time of the primaries, chance alone is more than the bound allows
SPENT = ["cpu_s", "records", "primary_cpu_s", "primary_records"]


def cost(evidence: Evidence) -> pd.DataFrame:
    """Return one row: by record, CPU time of copies relative to that of their primaries in the same seconds.

    The row also says since when copies took too much, with the columns of `_since_when_dearer`.
    """
    rows = evidence.rows("copies", "the run had no active copy").dropna(subset=["primary_cpu_s", "primary_records"])
    rows = rows.astype(dict.fromkeys(SPENT, float))
    sums = rows[SPENT].sum()
    if sums["primary_cpu_s"] < FEWEST_CPU_S or not sums["records"] or not sums["primary_records"]:
        raise NotEnough(f"the primaries of copies took less than {FEWEST_CPU_S:g} s of CPU time")
    own, primary = sums["cpu_s"] / sums["records"], sums["primary_cpu_s"] / sums["primary_records"]
    found = {"own_us": 1e6 * own, "primary_us": 1e6 * primary, "relative": own / primary}
    return pd.DataFrame([found | _since_when_dearer(rows, MOST * primary)])


def _since_when_dearer(rows: pd.DataFrame, allowed_s: float) -> dict[str, Any]:
    """From which report on copies took too much CPU time, if `allowed_s` [s] is allowed for each record.

    at_ns              from this report until the last one, the excess over what is allowed is the largest
    excess_s           this excess [s]
    partition          whose copy took the most more CPU time than its primary since then
    copy_s, primary_s  what these two took since then [s]
    """
    excess_s = (rows["cpu_s"] - allowed_s * rows["records"]).groupby(rows["at_ns"].astype("int64")).sum()
    until_end_s = excess_s[::-1].cumsum()
    at_ns = int(until_end_s.idxmax())
    since = rows[rows["at_ns"] >= at_ns].groupby("partition")[["cpu_s", "primary_cpu_s"]].sum()
    worst = (since["cpu_s"] - since["primary_cpu_s"]).idxmax()
    copy_s, primary_s = since["cpu_s"][worst], since["primary_cpu_s"][worst]
    return {"at_ns": at_ns, "excess_s": until_end_s.max(), "partition": worst, "copy_s": copy_s, "primary_s": primary_s}


def _dearer(found: pd.Series) -> str:
    excess, copy, primary = (significant(found[name]) for name in ("excess_s", "copy_s", "primary_s"))
    told = f"from here on, copies took {excess} s more CPU time than allowed"
    return f"{told}; the copy of {found['partition']} differs most: {copy} s, and its primary {primary} s"


CHECKS = (
    Check(
        name="copies.cpu",
        table="copies",
        subject=cost,
        rules=lambda evidence: [between("relative", 0, MOST)],
        observed=lambda found: (
            f"{significant(found['own_us'].iat[0])} µs per record, primaries"
            f" {significant(found['primary_us'].iat[0])} µs"
        ),
        expected=lambda evidence: f"at most {MOST:g} times the primaries' CPU time per record",
        asks=f"copies take at most {MOST:g} times as much CPU time per record as their primaries",
        asked_of=ASKED_OF[has_copies],
        applies=has_copies,
        parting=Parting("relative", _dearer),
    ),
)
