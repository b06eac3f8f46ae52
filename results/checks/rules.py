"""The rules of checks: expectations of Great Expectations, by name, on a data frame taken from the evidence.

Free of Great Expectations itself, which takes seconds to import: `results.checks.judge` evaluates checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import pandas as pd

from experiments.wording import shown, told_apart


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


def in_words(rule: Rule, broken: int, values: int, example: object) -> str:
    """How many values break a rule, such as "seconds: 2 of 66 values below 0, such as -0.5".

    A single value is shown without counts: "seconds: -0.5 below 0".
    """
    arguments = rule.arguments
    told = shown(example)
    match rule.expectation:
        case "ExpectColumnValuesToBeBetween":
            words, told = _outside(arguments.get("min_value"), arguments.get("max_value"), example)
        case "ExpectColumnValuesToBeInSet":
            words = f"other than {' or '.join(map(str, arguments['value_set']))}"
        case "ExpectColumnValuesToNotBeNull":
            return f"{arguments['column']}: {broken} of {values} values missing"
        case _:
            words = "unequal"
    columns = arguments.get("column") or f"{arguments['column_A']} and {arguments['column_B']}"
    if values == 1:
        return f"{columns}: {told} {words}"
    noun = "values" if "column" in arguments else "pairs"
    return f"{columns}: {broken} of {values} {noun} {words}, such as {told}"


def _outside(low: object, high: object, example: object) -> tuple[str, str]:
    values = [value for value in (example, low, high) if value is not None]
    figures = all(isinstance(value, Real) for value in values)
    told, *limits = told_apart(*values) if figures else [shown(value) for value in values]  # type: ignore[arg-type]
    where = "below" if high is None else "above" if low is None else "outside"
    return f"{where} {' to '.join(limits)}", told


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
