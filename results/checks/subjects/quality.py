"""The output equals that of the oracle."""

from __future__ import annotations

import pandas as pd

from results.checks.check import ASKED_OF, Check, has_oracle, promises_each_result_once
from results.checks.evidence import Evidence
from results.checks.rules import in_set


def closed_windows(evidence: Evidence) -> pd.DataFrame:
    """Return the table of the windows that are final; raises `NotEnough` if there are none."""
    return evidence.rows("quality", "no event-time window closed during the run")


CHECKS: tuple[Check, ...] = (
    Check(
        name="quality.nothing_lost",
        table="quality",
        subject=closed_windows,
        rules=lambda evidence: [in_set("lost", 0)],
        observed=lambda frame: (
            f"{frame['lost'].sum():,} of {frame['exact'].sum():,} results lost, "
            f"{frame['duplicated'].sum():,} duplicated, {len(frame)} windows"
        ),
        expected=lambda evidence: "0 lost",
        asks="no result of the oracle is missing",
        asked_of=ASKED_OF[has_oracle],
        applies=has_oracle,
    ),
    Check(
        name="quality.nothing_wrong",
        table="quality",
        subject=closed_windows,
        rules=lambda evidence: [in_set("wrong", 0)],
        observed=lambda frame: f"{frame['wrong'].sum():,} of {frame['exact'].sum():,} results wrong",
        expected=lambda evidence: "0 wrong",
        asks="no result differs from the oracle's",
        asked_of=ASKED_OF[has_oracle],
        applies=has_oracle,
    ),
    Check(
        name="quality.nothing_duplicated",
        table="quality",
        subject=closed_windows,
        rules=lambda evidence: [in_set("duplicated", 0)],
        observed=lambda frame: f"{frame['duplicated'].sum():,} of {frame['emitted'].sum():,} results duplicated",
        expected=lambda evidence: "0 duplicated",
        asks="no result was written twice",
        asked_of=ASKED_OF[promises_each_result_once],
        applies=promises_each_result_once,
    ),
)
