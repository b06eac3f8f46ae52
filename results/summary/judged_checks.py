"""The verdicts of a run. Reads the table `verdicts`, and imports nothing slow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from results.verdict import Verdict

if TYPE_CHECKING:
    from results.runs.store import Run


@dataclass(frozen=True)
class JudgedCheck:
    """One check with its verdict.

    table                that it looks at; None for a check of a reproduction
    observed, expected   what was found, and what is demanded; None if nothing is said
    detail               why it failed or is unknown; None if it passed
    """

    check: str
    table: str | None
    verdict: Verdict
    observed: str | None
    expected: str | None
    detail: str | None

    @classmethod
    def of(cls, row: Mapping[str, object]) -> JudgedCheck:
        """A row of the table `verdicts`, or a verdict on a reproduction. Values that are not texts count as missing."""
        told = (row.get(name) for name in ("table", "observed", "expected", "detail"))
        table, observed, expected, detail = (each if isinstance(each, str) else None for each in told)
        return cls(str(row["check"]), table, Verdict(str(row["verdict"])), observed, expected, detail)

    @property
    def sentence(self) -> str:
        """The check with what was observed and expected, or with the reason why it could not be evaluated."""
        if self.verdict is Verdict.UNKNOWN:
            return f"{self.check}: {self.detail}"
        return f"{self.check}: observed {self.observed}, expected {self.expected}"


def judged_checks(run: Run) -> list[JudgedCheck]:
    """All checks of a finished run, in the order of the table; none if nothing was checked.

    Raises `Damaged` for a table that cannot be used.
    """
    if not run.has("verdicts"):
        return []
    return [JudgedCheck.of(row) for row in run.table("verdicts").to_dict("records")]


def failed_checks(run: Run) -> list[str]:
    """The names of the checks that a finished run failed; raises as `judged_checks`."""
    return [each.check for each in judged_checks(run) if each.verdict is Verdict.FAIL]
