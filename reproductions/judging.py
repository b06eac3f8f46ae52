"""The verdict of a check on a table, by pandas alone.

The rules are those of `results.checks`, whose judge hands them to Great Expectations and writes its Data Docs;
importing that takes longer than computing most tables here. Both come to the same verdicts in the same words (a test).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from reproductions.reproduction import Computed, Reproduction, ReproductionCheck
from results.checks.rules import NotEnough, Rule, in_words
from results.verdict import Verdict

Row = dict[str, str | None]
COLUMNS = ("check", "verdict", "observed", "expected", "detail", "notices")
OF_A_TABLE = (pd.DataFrame, pd.Series, tuple)  # what has columns as attributes; `itertuples` makes rows tuples


def verdicts_of(reproduction: Reproduction, evidence: Computed) -> list[Row]:
    """The verdicts of all checks of a reproduction, as they are written: each with all of `COLUMNS`."""
    judged = (judge(check, evidence) for check in reproduction.checks)
    return [{column: row.get(column) for column in COLUMNS} for row in judged]


def judge(check: ReproductionCheck, evidence: Computed) -> Row:
    """The row of the verdicts: check, verdict, observed, expected, detail, and the error that the check must notice.

    Evidence that does not allow a verdict is unknown: `detail` says why. Such is a stored table that lacks a column, as
    another version of the code may have made it. Any other missing key or attribute is an error of the check, and is
    raised.
    """
    row: Row = {"check": check.name, "verdict": Verdict.UNKNOWN.value, "notices": check.plant.what}
    try:
        frame = check.subject(evidence)
        row |= {"observed": check.observed(frame), "expected": check.expected(evidence)}
        broken = [told for rule in check.rules(evidence) if (told := _broken(rule, frame))]
    # pandas says by these that values are of a type that cannot be compared
    except (NotEnough, TypeError, ValueError) as error:
        return row | {"detail": " ".join(str(error).split())}
    except KeyError as error:
        if not _is_missing_column(error.args[0] if error.args else None, evidence):
            raise
        return row | {"detail": _lacks(error.args[0])}
    except AttributeError as error:
        if not isinstance(error.obj, OF_A_TABLE) or not _is_missing_column(error.name, evidence):
            raise
        return row | {"detail": _lacks(error.name)}
    verdict = Verdict.FAIL if broken else Verdict.PASS
    return row | {"verdict": verdict.value, "detail": "; ".join(broken) or None}


def _is_missing_column(key: object, evidence: Computed) -> bool:
    """Whether a key that was not found can be a column that a stored table lacks."""
    stored = evidence.table if evidence.is_stored else None
    return stored is not None and isinstance(key, str) and key not in stored.columns


def _lacks(column: object) -> str:
    """In words, that a table lacks a column; of several columns pandas has a sentence of its own."""
    told = " ".join(str(column).split())
    return f"the table lacks a column: {told}" if " " in told else f"the table lacks column {told}"


def _broken(rule: Rule, frame: pd.DataFrame) -> str | None:
    """What of the frame does not meet a rule, in one sentence; None if all of it does."""
    examples = RULES[rule.expectation](frame, **rule.arguments)
    return in_words(rule, len(examples), len(frame), examples[0]) if len(examples) else None


def _outside(
    frame: pd.DataFrame, column: str, min_value: float | None, max_value: float | None, mostly: float
) -> list[Any]:
    values = frame[column].dropna()
    low = pd.Series(False, index=values.index) if min_value is None else values < min_value
    high = pd.Series(False, index=values.index) if max_value is None else values > max_value
    outside = values[low | high].tolist()
    return outside if len(values) - len(outside) < mostly * len(values) else []


def _not_in(frame: pd.DataFrame, column: str, value_set: list[Any]) -> list[Any]:
    values = frame[column].dropna()
    return values[~values.isin(value_set)].tolist()


def _missing(frame: pd.DataFrame, column: str) -> list[Any]:
    return frame[column][frame[column].isna()].tolist()


def _unequal(frame: pd.DataFrame, column_A: str, column_B: str) -> list[Any]:
    pairs = frame[[column_A, column_B]].dropna(how="all")
    return [pair for pair in pairs.itertuples(index=False, name=None) if pair[0] != pair[1]]


RULES: dict[str, Callable[..., list[Any]]] = {
    "ExpectColumnValuesToBeBetween": _outside,
    "ExpectColumnValuesToBeInSet": _not_in,
    "ExpectColumnValuesToNotBeNull": _missing,
    "ExpectColumnPairValuesToBeEqual": _unequal,
}
