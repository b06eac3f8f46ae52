"""Active copies cost no more than their primaries."""

from __future__ import annotations

import pandas as pd

from experiments.wording import significant
from results.checks.check import ASKED_OF, Check, has_copies
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, between

MOST = 1.2  # times the CPU time of a primary: a copy does the same, but for sending and checkpoints
FEWEST_CPU_S = 1.0  # with less CPU time of the primaries, chance alone is more than the bound allows


def cost(evidence: Evidence) -> pd.DataFrame:
    """Return one row: by record, CPU time of copies relative to that of their primaries in the same seconds."""
    rows = evidence.rows("copies", "the run had no active copy").dropna(subset=["primary_cpu_s", "primary_records"])
    sums = rows[["cpu_s", "records", "primary_cpu_s", "primary_records"]].astype(float).sum()
    if sums["primary_cpu_s"] < FEWEST_CPU_S or not sums["records"] or not sums["primary_records"]:
        raise NotEnough(f"the primaries of copies took less than {FEWEST_CPU_S:g} s of CPU time")
    own, primary = sums["cpu_s"] / sums["records"], sums["primary_cpu_s"] / sums["primary_records"]
    return pd.DataFrame({"own_us": [1e6 * own], "primary_us": [1e6 * primary], "relative": [own / primary]})


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
    ),
)
