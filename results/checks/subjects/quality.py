"""The output equals that of the oracle."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from experiments.spec import Experiment
from experiments.wording import counted
from results.checks.check import ASKED_OF, Check, has_oracle, promises_each_result_once
from results.checks.evidence import Evidence
from results.checks.rules import in_set


def closed_windows(evidence: Evidence) -> pd.DataFrame:
    """Return the table of the windows that are final; raises `NotEnough` if there are none."""
    return evidence.rows("quality", "no event-time window closed during the run")


def _none(column: str, of: str, asks: str, applies: Callable[[Experiment], bool]) -> Check:
    """No window has a result that this column of the quality table counts; `of`: the results to compare it with."""
    return Check(
        name=f"quality.nothing_{column}",
        table="quality",
        subject=closed_windows,
        rules=lambda evidence: [in_set(column, 0)],
        observed=lambda frame: (
            f"{frame[column].sum():,} of {frame[of].sum():,} results {column}, {counted(len(frame), 'window')}"
        ),
        expected=lambda evidence: f"0 {column}",
        asks=asks,
        asked_of=ASKED_OF[applies],
        applies=applies,
    )


CHECKS: tuple[Check, ...] = (
    _none("lost", "exact", "no result of the oracle is missing", has_oracle),
    _none("wrong", "exact", "no result differs from the oracle's", has_oracle),
    _none("duplicated", "emitted", "no result was written twice", promises_each_result_once),
)
