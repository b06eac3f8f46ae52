"""The page of the result tables."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from aftershock.reference.markdown import code, page, table
from results.tables.columns import FLAG, REAL, TEXT, WHOLE, Column, Table
from results.tables.comparison import COMPARISON_TABLES
from results.tables.schema import RUN_TABLES, SCHEMA_VERSION

ABOUT = f"""Each table is a Parquet file in `.aftershock/runs/RUN_ID/tables/`. Times that end in `_ns` are UTC
nanoseconds since 1970. Times that end in `_s` are seconds, unless the type has another unit. Shares and counts have no
unit. An empty value means "not measured", never zero; a column has one only if its type has a `?`. CSV files have
the same column names as the Parquet files. Pages and the report show a label and the unit. The label is the name,
mostly without its unit. If it is another one, the meaning ends with it in brackets. The schema version is
{SCHEMA_VERSION}; it is in the metadata of each file. [measurement.md](measurement.md) explains the quantities."""
COMPARED = """`aftershock results regress` writes these tables to `.aftershock/regressions/ID/`
([regressions.md](regressions.md))."""
UNITS = {"ns": "ns UTC", "s": "s", "bytes": "bytes", "records": "records"}  # of columns whose names end so
KINDS: dict[pa.DataType, str] = {TEXT: "text", WHOLE: "integer", REAL: "number", FLAG: "boolean"}


def tables() -> str:
    """The page as Markdown; a section is a table, a row one of its columns."""
    compared = ["## Tables of a recorded comparison", COMPARED, *_sections(COMPARISON_TABLES, "###")]
    return page("Result tables", "results/tables", ABOUT, *_sections(RUN_TABLES, "##"), *compared)


def _sections(found: Mapping[str, Table], level: str) -> list[str]:
    return [f"{level} {name}\n\nA row is {each.row}.\n\n{_columns(each)}" for name, each in found.items()]


def _columns(found: Table) -> str:
    rows = [(code(each.name), _type(each), f"{each.description}{_own_label(each)}") for each in found.columns]
    return table(("column", "type", "meaning"), rows)


def _type(found: Column) -> str:
    named = UNITS.get(found.name.rpartition("_")[2])
    unit = f" [{found.unit}]" if found.unit not in ("", named) else ""
    return f"{KINDS[found.kind]}{'?' if found.nullable else ''}{unit}"


def _own_label(found: Column) -> str:
    """A remark with the label, unless that is the name in words, with or without its unit."""
    start, _, end = found.name.rpartition("_")
    without_unit = start if end in UNITS else found.name
    plain = {name.replace("_", " ") for name in (found.name, without_unit)}
    return "" if found.label.lower() in plain else f" (on pages: {found.label})"
