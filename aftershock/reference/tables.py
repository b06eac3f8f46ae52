"""The page of the result tables."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from aftershock.reference.markdown import code, page, table
from results.tables.columns import FLAG, REAL, TEXT, WHOLE, Table
from results.tables.comparison import COMPARISON_TABLES
from results.tables.schema import RUN_TABLES, SCHEMA_VERSION

ABOUT = f"""Each table is a Parquet file in `.aftershock/runs/RUN_ID/tables/`. Times that end in `_ns` are
UTC nanoseconds since 1970, those that end in `_s` are seconds. Shares and counts have no unit. An empty value means
"not measured", never zero; a column may be empty only if the table below says so. CSV files have the same column names
as the Parquet files; pages and the report show the label in the column "on pages" and the unit. The schema version is
{SCHEMA_VERSION}; it is in the metadata of each file.
[measurement.md](measurement.md) explains the quantities."""
COMPARED = """`aftershock results regress` writes these tables to `.aftershock/regressions/ID/`
([regressions.md](regressions.md))."""
KINDS: dict[pa.DataType, str] = {TEXT: "text", WHOLE: "whole number", REAL: "number", FLAG: "true or false"}


def tables() -> str:
    """The page as Markdown; a section is a table, a row one of its columns."""
    compared = ["## Tables of a recorded comparison", COMPARED, *_sections(COMPARISON_TABLES, "###")]
    return page("Result tables", "results/tables", ABOUT, *_sections(RUN_TABLES, "##"), *compared)


def _sections(found: Mapping[str, Table], level: str) -> list[str]:
    return [f"{level} {name}\n\nA row is {each.row}.\n\n{_columns(each)}" for name, each in found.items()]


def _columns(found: Table) -> str:
    rows = [
        (code(each.name), KINDS[each.kind], each.unit, "yes" if each.nullable else "", each.label, each.description)
        for each in found.columns
    ]
    return table(("column", "type", "unit", "may be empty", "on pages", "meaning"), rows)
