"""Every table has the columns of its schema, and values within range."""

from __future__ import annotations

from functools import partial
from itertools import zip_longest

import pandas as pd

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
from results.checks.rules import Rule, between, in_set, pairs_equal, present
from results.tables.columns import SIGNED
from results.tables.schema import RUN_TABLES, TABLES, WORDS, LedgerClass

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
    for name, words in WORDS.get(table, {}).items():
        rules.append(in_set(name, *(word.value for word in words)))
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


CHECKS: tuple[Check, ...] = (
    *map(_schema_check, JUDGED_TABLES),
    *(_values_check(table) for table in JUDGED_TABLES if table not in HELD_AGAINST_OTHERS),
)
