"""Fits the content of a file to the schema of its table, so that readers can rely on the values.

Integers and floats of other widths are taken as the schema has them, a nullable column that is missing or NaN as null.
Anything else that does not fit is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

LARGEST_REAL = 1e18  # so that sums and products of two stay finite
LARGEST_COUNT = 2**53  # beyond it a float does not tell whole numbers apart
LONGEST_TEXT = 100_000  # bytes

Words = Mapping[str, type[StrEnum]]  # by column, where only some are allowed


class CellMisfit(ValueError):
    """A column is not as the schema has it; the message names the column."""


class Missing(CellMisfit):
    """A column is not there."""


def fit(table: pa.Table, schema: pa.Schema, words: Words) -> pa.Table:
    """The table with the columns of the schema, and then those that the schema does not know; raises `CellMisfit`."""
    names = table.column_names
    if len(set(names)) < len(names):
        raise CellMisfit("it has two columns of the same name")
    columns = {field.name: _column(table, field, words.get(field.name)) for field in schema}
    return pa.table(columns | {name: table[name] for name in names if name not in columns})


def _column(table: pa.Table, field: pa.Field, words: type[StrEnum] | None) -> pa.ChunkedArray:
    if field.name not in table.column_names:
        if field.nullable:
            return pa.chunked_array([pa.nulls(len(table), field.type)])
        raise Missing(f"it lacks the column {field.name}")
    column = _typed(table[field.name], field)
    if pa.types.is_floating(field.type):
        column = _finite(column, field)
    elif pa.types.is_integer(field.type):
        low, high = (0, 2**63) if field.name.endswith("_ns") else (-LARGEST_COUNT, LARGEST_COUNT)
        _require_between(column, field, low, high)
    elif pa.types.is_string(field.type):
        _require_text(column, field, words)
    if column.null_count and not field.nullable:
        raise CellMisfit(f"{column.null_count:,} of its values of {field.name} are missing")
    return column


def _typed(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """The column in the type of the schema, where that changes no value."""
    if column.type == field.type:
        return column
    if not _is_alike(column.type, field.type):
        raise CellMisfit(f"its column {field.name} is of type {column.type}, not {field.type}")
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid:
        raise CellMisfit(f"values of {field.name} do not fit into {field.type}") from None


def _is_alike(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(found):
        return True
    if pa.types.is_string(wanted):
        return pa.types.is_large_string(found)
    whole, real = pa.types.is_integer(found), pa.types.is_floating(found)
    return (whole and pa.types.is_integer(wanted)) or ((whole or real) and pa.types.is_floating(wanted))


def _finite(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """NaN as null: it is how other programs write that nothing was measured."""
    if pc.any(pc.is_nan(column)).as_py():
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, field.type), column)
    _require_between(column, field, -LARGEST_REAL, LARGEST_REAL)
    return column


def _require_between(column: pa.ChunkedArray, field: pa.Field, low: float, high: float) -> None:
    ends = pc.min_max(column).as_py()
    for end in ends.values():
        if end is not None and not low <= end <= high:
            raise CellMisfit(f"{field.name} is {end} in a row, which is out of all bounds")


def _require_text(column: pa.ChunkedArray, field: pa.Field, words: type[StrEnum] | None) -> None:
    if (pc.max(pc.binary_length(column)).as_py() or 0) > LONGEST_TEXT:
        raise CellMisfit(f"a text of {field.name} is longer than {LONGEST_TEXT:,} bytes")
    if words is None:
        return
    allowed = pa.array(sorted(words), pa.string())
    odd = pc.unique(column.filter(pc.invert(pc.is_in(column, allowed)))).drop_null()
    if len(odd):
        raise CellMisfit(f"{field.name} is {odd[0].as_py()!r} in a row; allowed: {', '.join(words)}")
