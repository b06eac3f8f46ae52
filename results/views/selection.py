"""Selects and sorts the runs of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from results.summary.index import IndexRow
from results.verdict import WORST_FIRST

SORTS: dict[str, Callable[[IndexRow], Any]] = {
    "started": lambda row: row.started_ns,
    "run": lambda row: row.run_id,
    "state": lambda row: row.state,
    "experiment": lambda row: row.experiment,
    "engine": lambda row: row.engine,
    "protocol": lambda row: row.protocol,
    "recovery": lambda row: row.recovery,
    "utilization": lambda row: row.utilization.measured,
    "predicted": lambda row: row.utilization.predicted,
    "faults": lambda row: row.struck,
    "verdict": lambda row: WORST_FIRST.index(row.verdict),
}
NEWEST_FIRST = "-started"


@dataclass(frozen=True)
class Selection:
    """What a list is narrowed to; None is no limit. Days are UTC, both included."""

    experiment: str | None = None
    engine: str | None = None
    protocol: str | None = None
    recovery: str | None = None
    verdict: str | None = None
    since: date | None = None
    until: date | None = None

    def takes(self, row: IndexRow) -> bool:
        """Whether the list shows this run."""
        if not self._has_day(row.started_ns):
            return False
        names = ("experiment", "engine", "protocol", "recovery", "verdict")
        return all(getattr(self, name) in (None, getattr(row, name)) for name in names)

    def _has_day(self, started_ns: int | None) -> bool:
        if started_ns is None:
            return self.since is None and self.until is None
        day = datetime.fromtimestamp(started_ns / 1e9, UTC).date()
        return (self.since or day) <= day <= (self.until or day)


def select(rows: Iterable[IndexRow], wanted: Selection, sort: str = NEWEST_FIRST) -> list[IndexRow]:
    """The runs that are wanted, by a name of `SORTS` (a hyphen before it reverses the order); unknown values last."""
    key = SORTS[sort.lstrip("-")]
    taken = [row for row in rows if wanted.takes(row)]
    known = [row for row in taken if key(row) is not None]
    known.sort(key=key, reverse=sort.startswith("-"))
    return known + [row for row in taken if key(row) is None]


def choices(rows: Iterable[IndexRow]) -> dict[str, list[str]]:
    """The values that the runs have of each field by which a list is narrowed to one."""
    found: dict[str, set[str]] = {"experiment": set(), "engine": set(), "protocol": set(), "recovery": set()}
    for row in rows:
        for name, values in found.items():
            values.add(getattr(row, name))
    return {name: sorted(values - {None}) for name, values in found.items()}
