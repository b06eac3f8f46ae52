"""Which finished runs may be removed, by their number and age."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from results.runs.store import RunStatus

DAY_NS = 86_400 * 10**9


def removable(
    runs: list[RunStatus],
    keep: int | None,
    older_than_days: float | None,
    protected: Collection[str],
    now_ns: int,
) -> list[str]:
    """The ids of those runs (as `Run.status` describes them) that may go, oldest first.

    A run goes when it is older than that many days (by its end) and beyond the `keep` newest of its experiment; a limit
    that is None says nothing against a run. Runs that failed are counted by themselves, so that they never push out
    one with results. What is protected stays.
    """
    by_kind: dict[tuple[str | None, str], list[RunStatus]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.started_ns, reverse=True):
        by_kind[run.experiment, run.state].append(run)
    surplus = [run for group in by_kind.values() for run in group[keep or 0 :]]
    old_enough = [run for run in surplus if older_than_days is None or _age_days(run, now_ns) > older_than_days]
    oldest_first = sorted(old_enough, key=lambda run: run.started_ns)
    return [run.run_id for run in oldest_first if run.run_id not in protected]


def _age_days(run: RunStatus, now_ns: int) -> float:
    return (now_ns - (run.ended_ns or run.started_ns)) / DAY_NS
