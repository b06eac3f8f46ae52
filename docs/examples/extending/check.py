"""A check: the query worked again within a limit after each outage."""

from __future__ import annotations

import pandas as pd

from results.checks.check import ASKED_OF, Check, has_faults
from results.checks.evidence import Evidence
from results.checks.rules import between, present

MOST_S = 60.0


def outages(evidence: Evidence) -> pd.DataFrame:
    """Return the recoveries with `down_s`, the time without the query [s]; raises `NotEnough` if there are none."""
    found = evidence.rows("recoveries", "there was nothing to recover from")
    return found.assign(down_s=(found["ready_ns"] - found["death_ns"]) / 1e9)


CHECKS: tuple[Check, ...] = (
    Check(
        name="recoveries.in_time",
        table="recoveries",
        subject=outages,
        rules=lambda evidence: [present("ready_ns"), between("down_s", 0, MOST_S)],
        observed=lambda frame: f"{len(frame)} recoveries, the longest {frame['down_s'].max():.3g} s",
        expected=lambda evidence: f"each at most {MOST_S:g} s",
        asks="after each outage the query works again within 60 s",
        asked_of=ASKED_OF[has_faults],
        applies=has_faults,
    ),
)
