"""A run as the JSON document that `aftershock benchmark --json` prints.

Times are in seconds; null stands for what was not measured.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from results.runs.store import Run
from results.summary.fallback import fell_back
from results.summary.findings import (
    PHASES,
    ledger_seconds,
    number,
    quality_totals,
    sustainable,
    table_or_empty,
    tentative_quality,
    the_run,
    timed_faults,
    utilizations,
)
from results.tables.schema import LedgerClass


def document(run: Run) -> dict[str, Any]:
    """Return the document of one run; moments count from the start of the measurement window.

    `fell_back` is there only if the run did something else than what was asked.
    """
    found, quality, searched = utilizations(run), quality_totals(run) or {}, sustainable(run)
    instead = fell_back(the_run(run))
    return {
        "run_id": run.run_id,
        **({"fell_back": instead} if instead else {}),
        "verdicts": [
            {name: _text(row[name]) for name in ("check", "verdict", "observed", "expected")}
            for _, row in table_or_empty(run, "verdicts").iterrows()
        ],
        "utilization": {name: getattr(found, name) for name in ("measured", "predicted", "low", "high", "expected")},
        "sustainable": {"rate": searched and searched.rate, "too_high": searched and searched.too_high},
        "ledger": ledger_seconds(run) or dict.fromkeys((*(each.value for each in LedgerClass), "window")),
        "faults": [_fault(row) for _, row in timed_faults(run).iterrows()],
        "recoveries": [_recovery(row) for _, row in table_or_empty(run, "recoveries").iterrows()],
        **_query_recoveries(run),
        "quality": {name: quality.get(name) for name in ("lost", "duplicated", "exact")} | tentative_quality(run),
    }


def _query_recoveries(run: Run) -> dict[str, Any]:
    """Only of a run in which queries came back one by one: in seconds after the first of them was lost."""
    table = table_or_empty(run, "query_recoveries")
    if table.empty:
        return {}
    first_ns = table["death_ns"].min()
    names = {f"{name}_at": f"{name}_ns" for name in ("planned", "available", "predicted", "normal")}
    return {
        "query_recoveries": [
            {"query": row["query"], "priority": number(row["priority"])}
            | {name: None if pd.isna(row[of]) else (row[of] - first_ns) / 1e9 for name, of in names.items()}
            for _, row in table.iterrows()
        ]
    }


def _text(value: object) -> str | None:
    return None if pd.isna(value) else str(value)


def _fault(row: pd.Series) -> dict[str, Any]:
    moments = {"planned_at": number(row["planned_at_s"]), "actual_at": number(row["actual_at_s"])}
    return moments | {"kind": row["kind"], "targets": row["targets"].split(","), "cause": row["cause"]}


def _recovery(row: pd.Series) -> dict[str, Any]:
    phases = {phase: number(row[f"{phase}_s"]) for phase in PHASES}
    return {"fault": None if pd.isna(row["fault"]) else int(row["fault"])} | phases
