"""The rules of checks: expectations of Great Expectations, by name, on a data frame taken from the evidence.

Free of Great Expectations itself, which takes seconds to import: `results.checks.judge` evaluates checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import pandas as pd


class Named(Protocol):
    """Evidence has the name under which its checks are filed."""

    @property
    def name(self) -> str:
        """The run's id, or what else a check is filed under."""


Seen = TypeVar("Seen", bound=Named)


class NotEnough(Exception):
    """A check cannot be evaluated on this evidence; the message says what it lacks."""


class Rule(NamedTuple):
    """An expectation by its class name in Great Expectations, with its arguments."""

    expectation: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class TableCheck(Generic[Seen]):
    """One check; `subject` raises `NotEnough` on evidence that does not allow a verdict."""

    name: str
    table: str
    subject: Callable[[Seen], pd.DataFrame]
    rules: Callable[[Seen], list[Rule]]
    observed: Callable[[pd.DataFrame], str]
    expected: Callable[[Seen], str]


def between(column: str, low: float | None, high: float | None, share: float = 1.0) -> Rule:
    """Values lie within the bounds, both included, in at least this share of the rows."""
    bounds = {"min_value": low, "max_value": high, "mostly": share}
    return Rule("ExpectColumnValuesToBeBetween", {"column": column, **bounds})


def in_set(column: str, *allowed: object) -> Rule:
    """Every value is one of these."""
    return Rule("ExpectColumnValuesToBeInSet", {"column": column, "value_set": list(allowed)})


def present(column: str) -> Rule:
    """No value is missing."""
    return Rule("ExpectColumnValuesToNotBeNull", {"column": column})


def pairs_equal(stored: str, expected: str) -> Rule:
    """Both columns have the same value in every row."""
    return Rule("ExpectColumnPairValuesToBeEqual", {"column_A": stored, "column_B": expected})
