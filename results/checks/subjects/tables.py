"""Every table has the columns of its schema, and values within range; every outage has a recovery."""

from __future__ import annotations

from functools import partial
from itertools import zip_longest

import pandas as pd

from experiments.fault_kinds import FaultKind
from experiments.wording import counted
from models.sustainable.lag import ProbeOutcome
from results.checks.check import (
    ASKED_OF,
    Check,
    has_copies,
    has_faults,
    has_oracle,
    is_dataflow,
    is_tentative,
    keeps_output_log,
    names_queries,
    recovers_by_query,
    recovers_by_task,
    searches,
    takes_checkpoints,
)
from results.checks.evidence import PYTHON_TYPES, Evidence
from results.checks.rules import NotEnough, Rule, between, in_set, pairs_equal, present
from results.summary.findings import FAILURE_CLASSES, took_effect
from results.tables.columns import SIGNED
from results.tables.schema import RUN_TABLES, TABLES, FaultOutcome, LedgerClass
from results.tables.testbed import RecoveredHow

RESTART_S = 60.0  # from the return of the last host until the query works again: twice as long as usual
JUDGED_TABLES = tuple(table for table in TABLES if table != "verdicts")
HELD_AGAINST_OTHERS = (
    "recoveries",
    "partition_recoveries",
    "query_recoveries",
    "replayed_recoveries",
    "useful_time",
)  # tables with a check of values of their own
HAVE_THE_TABLE = {"quality": has_oracle, "tentative": is_tentative, "probes": searches}
HAVE_THE_TABLE |= dict.fromkeys(("partition_checkpoints", "partition_recoveries", "partition_rates"), is_dataflow)
HAVE_THE_TABLE |= {"query_recoveries": recovers_by_query, "query_latencies": names_queries}
HAVE_THE_TABLE |= {"output_logs": keeps_output_log, "copies": has_copies, "spark_tasks": recovers_by_task}
NEEDED_FOR = {
    **dict.fromkeys(("faults", "fault_fit"), has_faults),
    "partition_checkpoints": takes_checkpoints,
    "probes": searches,
    "tentative": is_tentative,
    "quality": has_oracle,
    "output_logs": keeps_output_log,
    "spark_tasks": recovers_by_task,
    "copies": has_copies,
    "partition_rates": is_dataflow,
    "query_latencies": names_queries,
}


def columns(evidence: Evidence, table: str) -> pd.DataFrame:
    """Return one row per column of a table as stored, with the name and the type that its schema wants there."""
    frame = evidence.raw_table(table)
    stored = [(name, kind.type.__name__) for name, kind in frame.dtypes.items()]
    wanted = [(field.name, PYTHON_TYPES[field.type]) for field in TABLES[table]]
    rows = [have + want for have, want in zip_longest(stored, wanted, fillvalue=(None, None))]
    return pd.DataFrame(rows, columns=["column", "type", "expected_column", "expected_type"])


def recoveries(evidence: Evidence) -> pd.DataFrame:
    """Return the recoveries with `ended`, or of a run that needed none one row: `outage_s`, the ledger's seconds of
    outages.

    A run needs none where no fault that took effect loses work by itself, and the query went on through those that did.
    """
    found = evidence.table("recoveries")
    struck = took_effect(evidence.table("faults"))
    if not found.empty:
        return found.assign(ended=_ended(found, struck, evidence))
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
    due_ns = last_ns + int((evidence.experiment.faults.longest_heal_s + RESTART_S) * 1e9)
    ended = found["ready_ns"].notna()
    ended.iloc[-1] |= due_ns > evidence.the_run()["window_end_ns"]
    return ended


def value_rules(table: str) -> list[Rule]:
    """The expectations on a table's values that follow from its schema: what must be there, and in what range."""
    rules = []
    for column in RUN_TABLES[table].columns:
        if not column.nullable:
            rules.append(present(column.name))
        if column.is_number and column.bounds != SIGNED:
            rules.append(between(column.name, *column.bounds))
    if table == "ledger":
        rules.append(in_set("class", *(each.value for each in LedgerClass)))
    if table == "probes":
        rules.append(in_set("verdict", *(outcome.value for outcome in ProbeOutcome)))
    if table == "partition_recoveries":
        rules.append(in_set("how", *(how.value for how in RecoveredHow)))
    if table == "faults":
        rules.append(in_set("outcome", *(outcome.value for outcome in FaultOutcome)))
    return rules


def _schema_check(table: str) -> Check:
    return Check(
        name=f"{table}.schema",
        table=table,
        subject=partial(columns, table=table),
        rules=lambda evidence: [pairs_equal("column", "expected_column"), pairs_equal("type", "expected_type")],
        observed=lambda frame: f"{frame['column'].notna().sum()} columns",
        expected=lambda evidence: f"{len(TABLES[table])} columns by name, order and type",
        asks="the table has the columns of the schema, with their names, order and types",
        asked_of=ASKED_OF[HAVE_THE_TABLE.get(table)],
        applies=HAVE_THE_TABLE.get(table, lambda experiment: True),
    )


def _values_check(table: str) -> Check:
    return Check(
        name=f"{table}.values",
        table=table,
        subject=lambda evidence: evidence.rows(table, f"table {table} has no rows"),
        rules=lambda evidence: value_rules(table),
        observed=row_count,
        expected=lambda evidence: "no value missing or out of range",
        asks="the table has rows, and no value is missing or out of range",
        asked_of=ASKED_OF[NEEDED_FOR.get(table)],
        applies=NEEDED_FOR.get(table, lambda experiment: True),
    )


def row_count(frame: pd.DataFrame) -> str:
    """What is observed of a table as a whole."""
    return counted(len(frame), "row")


def _recoveries_seen(frame: pd.DataFrame) -> str:
    return f"no recovery, {frame['outage_s'].iat[0]:g} s of outages" if "outage_s" in frame else row_count(frame)


def _recovery_rules(evidence: Evidence) -> list[Rule]:
    """On the recoveries, or on what stands for their absence."""
    if evidence.table("recoveries").empty:
        return [in_set("outage_s", 0.0)]
    return [*value_rules("recoveries"), in_set("ended", True)]


CHECKS: tuple[Check, ...] = (
    *map(_schema_check, JUDGED_TABLES),
    *(_values_check(table) for table in JUDGED_TABLES if table not in HELD_AGAINST_OTHERS),
    Check(
        name="recoveries.values",
        table="recoveries",
        subject=recoveries,
        rules=_recovery_rules,
        observed=_recoveries_seen,
        expected=lambda evidence: "no value missing or out of range; every outage has a recovery and an end",
        asks="no value is missing or out of range; the query worked again after each outage, unless the window ended at"
        f" most {RESTART_S:g} s after the last host returned; if there is no recovery, there is no outage",
        asked_of=ASKED_OF[has_faults],
        applies=has_faults,
    ),
)
