"""Queries were restored in the order and at the times that the model plans, each after it was lost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from results.checks.check import ASKED_OF, Check, recovers_by_query
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, Rule, between
from results.checks.subjects.tables import row_count, value_rules

TOLERANCE = 0.1  # of the time from the death to the moment that the model plans


def query_recoveries(evidence: Evidence) -> pd.DataFrame:
    """Return the table with `ahead_s`: by how much a step of a query comes before the one that it follows, at most."""
    rows = evidence.rows("query_recoveries", "no query was lost")
    steps = {name: rows[f"{name}_ns"].astype("Int64") for name in ("death", "planned", "available")}
    pairs = (("death", "planned"), ("planned", "available"))
    ahead_ns = pd.concat([steps[before] - steps[after] for before, after in pairs], axis=1).max(axis=1)
    return rows.assign(ahead_s=ahead_ns.astype(float) / 1e9)


def planned(evidence: Evidence) -> pd.DataFrame:
    """Return the queries of which the model knows a moment, with `off`: how far the planned one is from it.

    In tolerances: a tenth of the time since the death, or a batch if that is more. Infinite if it was never planned.
    """
    rows = evidence.rows("query_recoveries", "no query was lost")
    known = rows[rows["predicted_ns"].notna()]
    if known.empty:
        raise NotEnough("slots came between the losses, or none came: the model plans no such burst")
    since_s = (known["predicted_ns"] - known["death_ns"]).astype(float) / 1e9
    allowed_s = np.maximum(TOLERANCE * since_s, evidence.experiment.engine.batch_length_run_s)
    apart_s = (known["planned_ns"] - known["predicted_ns"]).astype("Float64").abs().astype(float) / 1e9
    return known.assign(off=(apart_s / allowed_s).fillna(np.inf))


def _order(evidence: Evidence) -> list[Rule]:
    return [*value_rules("query_recoveries"), between("ahead_s", None, 0)]


def _as_planned(evidence: Evidence) -> list[Rule]:
    return [between("off", 0, 1)]


def _worst(table: pd.DataFrame) -> str:
    worst = table.loc[table["off"].idxmax()]
    return f"{len(table)} queries, the worst is {worst['query']} with {worst['off']:.2f} of what is allowed"


CHECKS: tuple[Check, ...] = (
    Check(
        name="query_recoveries.values",
        table="query_recoveries",
        subject=query_recoveries,
        rules=_order,
        observed=row_count,
        expected=lambda evidence: "no value missing or out of range; death, planned, available in this order",
        asks="no value is missing or out of range; death, planned and available are in this order",
        asked_of=ASKED_OF[recovers_by_query],
        applies=recovers_by_query,
    ),
    Check(
        name="query_recoveries.as_planned",
        table="query_recoveries",
        subject=planned,
        rules=_as_planned,
        observed=_worst,
        expected=lambda evidence: f"planned within {TOLERANCE:.0%}, or a batch, of the model's moment",
        asks="each query is planned when the model has it planned for the same losses and arrivals, within 10 % of the"
        " time since its death or a batch",
        asked_of=ASKED_OF[recovers_by_query],
        applies=recovers_by_query,
    ),
)
