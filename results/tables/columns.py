"""The columns of result tables: type, unit, label and meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa

TEXT, WHOLE, REAL, FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
MOMENT = "ns UTC"  # unit of a point in time
Bounds: TypeAlias = tuple[float | None, float | None]
UNSIGNED: Bounds = (0, None)
SIGNED: Bounds = (None, None)
SHARE: Bounds = (0, 1)
Row: TypeAlias = dict[str, object]  # by the names of the columns
UNITS = {"_ns": MOMENT, "_s": "s", "_bytes": "bytes", "_records": "records"}  # by the end of a column's name


@dataclass(frozen=True)
class Column:
    """One column.

    unit    empty for counts, shares and what is no number
    label   stands for the name on pages
    bounds  between which numbers lie, both included; None where there is no bound
    """

    name: str
    kind: pa.DataType
    nullable: bool
    description: str
    unit: str
    label: str
    bounds: Bounds = UNSIGNED

    @property
    def is_number(self) -> bool:
        """Whether the column holds numbers."""
        return self.kind in (WHOLE, REAL)

    @property
    def heading(self) -> str:
        """For the head of a table: the label and, in brackets, the unit."""
        return f"{self.label} [{self.unit}]" if self.unit else self.label


@dataclass(frozen=True)
class Table:
    """One table: what a row is, and its columns in order."""

    row: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """The names, types and nullability of the columns."""
        return pa.schema([pa.field(each.name, each.kind, each.nullable) for each in self.columns])

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The columns by their names."""
        return {each.name: each for each in self.columns}

    def of(self, rows: Iterable[Mapping[str, object]]) -> pa.Table:
        """The rows as a table; a column that may be empty is null in a row that does not name it.

        Raises `ValueError` for a row with a name that is no column, or that does not name one that must have a value.
        """
        listed = list(rows)
        for row in listed:
            if unknown := row.keys() - self.by_name.keys():
                raise ValueError(f"no column is named {', '.join(sorted(unknown))}")
            if lacking := [each.name for each in self.columns if not each.nullable and each.name not in row]:
                raise ValueError(f"a row lacks {', '.join(lacking)}")
        return pa.Table.from_pylist(listed, schema=self.schema)


def must(
    kind: pa.DataType, name: str, description: str, unit: str | None = None, label: str = "", bounds: Bounds = UNSIGNED
) -> Column:
    """A column that has a value in every row; unit and label follow from the name unless they are given."""
    return Column(name, kind, False, description, _unit(name, unit), label or _label_of(name), bounds)


def may(
    kind: pa.DataType, name: str, description: str, unit: str | None = None, label: str = "", bounds: Bounds = UNSIGNED
) -> Column:
    """A column that is null where nothing was measured; unit and label follow from the name unless they are given."""
    return Column(name, kind, True, description, _unit(name, unit), label or _label_of(name), bounds)


def _unit(name: str, given: str | None) -> str:
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "") if given is None else given


def _label_of(name: str) -> str:
    """The name without the end that tells its unit, which stands beside it."""
    for end in UNITS:
        name = name.removesuffix(end)
    words = name.replace("_", " ")
    return words[0].upper() + words[1:]
