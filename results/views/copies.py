"""The copies of a run in readable form: what was copied where, and what that cost."""

from __future__ import annotations

from typing import NamedTuple

from results.damage import Damaged
from results.runs.store import Run
from results.summary.findings import table_or_empty


class CopyRow(NamedTuple):
    """One copy on one host: means over the time in which it was reported, and the most output that it kept."""

    partition: str
    host: str
    seconds: float
    cpu_cores: float
    primary_cores: float | None
    input_rate_bytes: float
    most_retained_bytes: int


def copies_of(run: Run) -> list[CopyRow]:
    """By partition what was reported of copies for some time; nothing without copies, or of a damaged table."""
    try:
        table = table_or_empty(run, "copies")
    except Damaged:
        return []
    found = []
    for (partition, host), rows in table[table["seconds"] > 0].groupby(["partition", "host"], sort=True):
        seconds = float(rows["seconds"].sum())
        both = rows.dropna(subset=["primary_cpu_s"])
        primary = float(both["primary_cpu_s"].sum() / both["seconds"].sum()) if len(both) else None
        means = float(rows["cpu_s"].sum() / seconds), primary, float(rows["input_bytes"].sum() / seconds)
        found.append(CopyRow(str(partition), str(host), seconds, *means, int(rows["retained_bytes"].max())))
    return found
