"""Planted errors: each check names an error that it must notice, and a test plants it.

What is computed here has its errors in the code: `InCode` puts something wrong in the place of a function or a
constant, and the reproduction is computed again with it. What was measured in runs has them in the rows of its table:
`InRows`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class InCode:
    """An error in the code.

    what    in words, as a reader would say it: "eq. 10 x 1.05"
    at      what is changed, as module:name or module:class.name; a function is changed wherever it has been imported
    change  what is there -> what is wrong
    """

    what: str
    at: str
    change: Callable[[Any], Any]


@dataclass(frozen=True)
class InRows:
    """An error in what was measured: `what` in words, and `change`, sound rows of the table -> wrong ones."""

    what: str
    change: Callable[[pd.DataFrame], pd.DataFrame]


Plant = InCode | InRows


def scaled(what: str, at: str, factor: float) -> InCode:
    """What a function returns, times a factor."""
    return InCode(
        f"{what} x {factor:g}",
        at,
        lambda sound: lambda *values, **named: factor * sound(*values, **named),
    )


def put(what: str, at: str, value: object) -> InCode:
    """Another value or function in the place of the one that is there."""
    return InCode(what, at, lambda sound: value)


def scaled_rows(column: str, factor: float, **where: object) -> InRows:
    """A column times a factor, in the rows in which the columns named have these values; without any, in all rows."""
    what = f"{column} x {factor:g}{_of(where)}"
    return InRows(what, lambda table: _put(table, column, factor * table[column], where))


def put_in_rows(column: str, value: object, **where: object) -> InRows:
    """A value in a column, in the rows in which the columns named have these values; without any, in all rows."""
    return InRows(f"{column} = {value}{_of(where)}", lambda table: _put(table, column, value, where))


def like_rows(columns: tuple[str, ...], protocol: str, other: str, factor: float = 1.0) -> InRows:
    """One protocol's columns become those of another, row by row, times a factor; both have as many rows."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([alike(rows) for _, rows in table.groupby("simulated", sort=False)])

    def alike(rows: pd.DataFrame) -> pd.DataFrame:
        mine, theirs = rows["protocol"] == protocol, rows["protocol"] == other
        rows = rows.copy()
        for column in set(columns) & set(rows):
            rows.loc[mine, column] = factor * rows.loc[theirs, column].to_numpy()
        return rows

    return InRows(f"{' and '.join(columns)} of {protocol} := {factor:g} x that of {other}", change)


def _of(where: dict[str, object]) -> str:
    """Which rows, in words; nothing if they are all rows."""
    return f" of {', '.join(map(str, where.values()))}" if where else ""


def _put(table: pd.DataFrame, column: str, value: Any, where: dict[str, object]) -> pd.DataFrame:
    chosen = pd.Series(True, index=table.index)
    for name, wanted in where.items():
        chosen &= table[name] == wanted
    return table.assign(**{column: table[column].mask(chosen, value)})
