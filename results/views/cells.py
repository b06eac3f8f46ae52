"""Formats result tables for pages and reports: column heads with units, cells with three digits.

Behind a cell stands its exact value, as CSV and Parquet files have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.wording import significant
from results.tables.columns import MOMENT, Column
from results.tables.comparison import COMPARISON_TABLES
from results.tables.schema import RUN_TABLES

MISSING = "\N{EN DASH}"
TABLES = RUN_TABLES | COMPARISON_TABLES
SHARED_TEMPLATES = Path(__file__).parent.parent / "templates" / "shared"  # of both reports and pages


@dataclass(frozen=True)
class ShownCell:
    """One value of a table: its text, and what the text leaves out."""

    text: str
    exact: str = ""


@dataclass(frozen=True)
class ShownHead:
    """The head of a column: its label with the unit of its cells, what the column is, whether its cells are numbers."""

    text: str
    meaning: str
    numeric: bool


def head(table: str, name: str) -> ShownHead:
    """The head of a column of a result table, as its schema has it; of one that the schema lacks, only the name."""
    column = column_of(table, name)
    if column is None:
        return ShownHead(name, "not in the schema of this version", False)
    text = f"{column.label} (UTC)" if column.unit == MOMENT else column.heading  # cells show a moment as a date
    return ShownHead(text, f"{name}: {column.description}".replace("`", ""), column.is_number)


def column_of(table: str, name: str) -> Column | None:
    """A column of a result table; None if the schema lacks it."""
    return TABLES[table].by_name.get(name)


def cell(column: Column | None, value: Any) -> ShownCell:
    """Print one value: moments as UTC, real numbers to three digits, thousands grouped where there is a unit.

    Numbers without a unit may be names, such as a seed or the number of a batch, and stay as they are.
    """
    if pd.isna(value):
        return ShownCell(MISSING, "not measured")
    if isinstance(value, bool):
        return ShownCell("yes" if value else "no")
    if isinstance(value, float):
        return ShownCell(significant(value), repr(float(value)))
    if not isinstance(value, int) or column is None or not column.unit:
        return ShownCell(str(value))
    if column.unit == MOMENT:
        return ShownCell(time_text(value), f"{value} ns")
    return ShownCell(f"{value:,}", str(value))


def time_text(time_ns: int | None) -> str:
    """A time [ns since the epoch] as UTC to the millisecond."""
    if time_ns is None:
        return MISSING
    seconds, rest_ns = divmod(int(time_ns), 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest_ns // 1_000_000:03d}"
