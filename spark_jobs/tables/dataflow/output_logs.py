"""The output logs of a testbed run, as the slots reported them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from journal.event import Event
from journal.events.testbed import Report
from results.tables.columns import Row


def output_logs(journal: Sequence[Event], window: tuple[int, int]) -> list[Row]:
    """One row for each report in the window [ns] and each partition that keeps a log."""
    reports = [each for each in journal if isinstance(each, Report) and window[0] <= each.at_ns < window[1]]
    return [
        {"at_ns": report.at_ns, "partition": partition, **_whole(counts), "check_s": counts["check_s"]}
        for report in reports
        for partition, counts in sorted(report.logs.items())
    ]


def _whole(counts: Mapping[str, float]) -> Row:
    return {name: int(value) for name, value in counts.items() if name != "check_s"}
