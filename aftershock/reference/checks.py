"""The page of a run's checks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from aftershock.reference.markdown import code, page, table
from results.checks.catalogue import CHECKS
from results.checks.check import Check

TEXT = """A check looks at one table of a run and yields a verdict: pass, fail or unknown. A check that cannot be
evaluated is unknown, never pass. It says why in `verdicts.detail`. Great Expectations evaluates the checks and writes
Data Docs. [measurement.md](measurement.md) explains the quantities, [tables.md](tables.md) the tables, and [failed
checks](../guides/failed-checks.md) says what to do if a check fails. A check that has no meaning for an experiment is
left out; the last column says for which experiments it is evaluated."""


def checks() -> str:
    """The page as Markdown; a row is a check, or has the checks that ask the same of several tables."""
    asked = [list(same) for _, same in groupby(sorted(CHECKS, key=_first_alike), _first_alike)]
    head = ("check", "table", "passes if", "experiments with")
    return page("Checks of a run", "results/checks/catalogue.py", TEXT, table(head, map(_row, asked)))


def _first_alike(found: Check) -> int:
    """The place of the first check that asks the same of the same experiments."""
    return next(
        place for place, each in enumerate(CHECKS) if (each.asks, each.asked_of) == (found.asks, found.asked_of)
    )


def _row(alike: Sequence[Check]) -> tuple[str, ...]:
    names, tables = (
        ", ".join(map(code, found)) for found in zip(*((each.name, each.table) for each in alike), strict=True)
    )
    first = next(each for each in CHECKS if each.asks == alike[0].asks)
    asks = first.asks if first in alike else f"as {code(first.name)}"
    return (names, tables if len(alike) == 1 else "each its own", asks, alike[0].asked_of)
