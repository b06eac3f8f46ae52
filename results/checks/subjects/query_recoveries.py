"""Queries were restored in the order and at the times that the model plans, each after it was lost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.wording import significant
from results.checks.check import ASKED_OF, Check, Parting, recovers_by_query, tells_relative_latency
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, Rule, between
from results.checks.subjects.tables import row_count, value_rules
from results.summary.availability import NORMAL_S, next_losses

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
        raise NotEnough(
            "the model plans no burst in which slots joined between losses, no slot joined, or costs are measured"
        )
    since_s = (known["predicted_ns"] - known["death_ns"]).astype(float) / 1e9
    allowed_s = np.maximum(TOLERANCE * since_s, evidence.experiment.engine.batch_length_run_s)
    apart_s = (known["planned_ns"] - known["predicted_ns"]).astype("Float64").abs().astype(float) / 1e9
    return known.assign(off=(apart_s / allowed_s).fillna(np.inf))


def caught_up(evidence: Evidence) -> pd.DataFrame:
    """Return the queries that were followed for long enough, with `off`: how long until their relative latency was
    normal, over how long they had been away. Infinite if it never was.

    Input that came meanwhile is caught up with in backlog / (service rate - rate): at most as long as the query was
    away, if it can process twice what comes. A query that was away for less than it takes until its next result is
    due has until that result. Latency is averaged over `NORMAL_S` from then on: a query that is lost again before the
    end of that is judged by its next recovery. One that was planned and is not seen to be available is judged from when
    it was planned.
    """
    rows = evidence.rows("query_recoveries", "no query was lost")
    latencies = evidence.rows("query_latencies", "no query emitted a result")
    back = rows.assign(available_ns=rows["available_ns"].where(rows["available_ns"].notna(), rows["planned_ns"]))
    back = back[back["available_ns"].notna()]
    away_ns, first_ns = (back["available_ns"] - back["death_ns"]).astype("Int64"), _first_result_ns(back, latencies)
    allowed_ns = away_ns.where(away_ns >= first_ns, first_ns)
    until_ns = back["available_ns"] + allowed_ns
    again_ns = pd.Series(next_losses(rows["query"].to_list(), rows["death_ns"].to_list()), rows.index, dtype=object)
    followed_ns = until_ns + round(NORMAL_S * 1e9)
    lasts = np.array([again > end for again, end in zip(again_ns[back.index], followed_ns, strict=True)], bool)
    seen = back["normal_ns"].notna() | (followed_ns <= latencies["arrived_ns"].max()) & lasts
    if not seen.any():
        raise NotEnough("no query was observed for as long after its recovery as it had been unavailable")
    took_ns = (back["normal_ns"] - back["available_ns"]).astype("Float64")
    return back.assign(off=(took_ns / allowed_ns).astype("Float64").fillna(np.inf).astype(float))[seen]


def _first_result_ns(back: pd.DataFrame, latencies: pd.DataFrame) -> pd.Series:
    """How long it took from each recovery until the first result of the query came; 0 if none did."""

    def wait_ns(row: pd.Series) -> int:
        arrived_ns = latencies.loc[latencies["query"] == row["query"].rpartition(".")[0], "arrived_ns"]
        later_ns = arrived_ns[arrived_ns >= row["available_ns"]]
        return 0 if later_ns.empty else int(later_ns.min()) - int(row["available_ns"])

    return pd.Series([wait_ns(row) for _, row in back.iterrows()], index=back.index, dtype="Int64")


def _order(evidence: Evidence) -> list[Rule]:
    return [*value_rules("query_recoveries"), between("ahead_s", None, 0)]


def _as_planned(evidence: Evidence) -> list[Rule]:
    return [between("off", 0, 1)]


def _worst(table: pd.DataFrame) -> str:
    worst = table.loc[table["off"].idxmax()]
    told = f"{significant(worst['off'])} of the allowed difference" if np.isfinite(worst["off"]) else "never planned"
    return f"{len(table)} queries, the worst is {worst['query']}: {told}"


def _slowest(table: pd.DataFrame) -> str:
    worst = table.loc[table["off"].idxmax()]
    took = f"it took {significant(worst['off'])} of the allowed time"
    told = took if np.isfinite(worst["off"]) else "its latency did not become normal again"
    return f"{len(table)} queries, the slowest is {worst['query']}: {told}"


def _planned_when(query: pd.Series) -> str:
    planned_s, model_s = (_since_death(query, step) for step in ("planned", "predicted"))
    return f"{query['query']} was lost (planned: {planned_s}; by the model: {model_s})"


def _usual_when(query: pd.Series) -> str:
    back_s, usual_s = (_since_death(query, step) for step in ("available", "normal"))
    return f"{query['query']} was lost (available: {back_s}; latency normal: {usual_s})"


def _since_death(query: pd.Series, step: str) -> str:
    moment_ns = query[f"{step}_ns"]
    return "never" if pd.isna(moment_ns) else f"{significant((moment_ns - query['death_ns']) / 1e9)} s later"


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
        expected=lambda evidence: f"planned at the moment that the model gives, within {TOLERANCE:.0%} or a batch",
        asks="each query was planned at the moment that the model gives for the same losses and the same joining slots,"
        " within a batch or 10 % of the time since its death",
        asked_of=ASKED_OF[recovers_by_query],
        applies=recovers_by_query,
        parting=Parting("off", _planned_when),
    ),
    Check(
        name="query_recoveries.on_time",
        table="query_recoveries",
        subject=caught_up,
        rules=lambda evidence: [between("off", None, 1)],
        observed=_slowest,
        expected=lambda evidence: (
            "relative latency below 1.2 again within the time that the query was unavailable, or from its first result"
        ),
        asks="after its recovery, each query's relative latency falls below 1.2 (on average over 3 s) within as much"
        " time as the query was unavailable, or with its first result: a query that can process twice its input rate"
        " catches up in this time",
        asked_of=ASKED_OF[tells_relative_latency],
        applies=tells_relative_latency,
        parting=Parting("off", _usual_when),
    ),
)
