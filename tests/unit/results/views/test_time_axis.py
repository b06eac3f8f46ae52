"""Phases of recoveries and the rate of commits along the time axis of a run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from results.runs.store import Run
from results.tables.schema import RUN_TABLES
from results.views import charts
from results.views.time_axis import MOMENTS, Span, commit_rate, phase_spans
from tests.unit.results import synthetic

WINDOW_S = 60.0


def run_with(folder: Path, *recoveries: tuple[float | None, ...]) -> Run:
    """A run with recoveries whose moments, from death to normal, are given in seconds of the window."""
    run = synthetic.make_run(folder, kills=(8.3,), window_s=WINDOW_S)
    rows = [
        {"recovery": i, "fault": i, "faults": 1}
        | {f"{name}_ns": None if at is None else synthetic.ns(at) for name, at in zip(MOMENTS, moments, strict=True)}
        for i, moments in enumerate(recoveries)
    ]
    run.write_table("recoveries", RUN_TABLES["recoveries"].of(rows))
    return run


@pytest.mark.parametrize(
    ("moments", "spans"),
    [
        ((5, 6, 9, 12, 20), [("detect", 5, 6), ("restart", 6, 9), ("restore", 9, 12), ("catch_up", 12, 20)]),
        ((5, 5, 9, 12, None), [("restart", 5, 9), ("restore", 9, 12)]),  # whether it caught up is not known
        ((5, 6, 9, None, None), [("detect", 5, 6), ("restart", 6, 9)]),
        ((5, None, 9, 12, None), [("detect", 5, 9), ("restore", 9, 12)]),
        ((5, 6, None, None, None), [("detect", 5, 6), ("restart", 6, 60)]),  # down until the window ends
        ((5, None, None, None, None), [("detect", 5, 60)]),
        ((-4, -3, 2, 50, 70), [("restart", 0, 2), ("restore", 2, 50), ("catch_up", 50, 60)]),
    ],
)
def test_a_phase_lasts_from_moment_to_moment_within_the_window(tmp_path, moments, spans):
    assert phase_spans(run_with(tmp_path, moments)) == [Span(*span) for span in spans]


def test_of_recoveries_that_overlap_the_earliest_phase_counts(tmp_path):
    run = run_with(tmp_path, (5, 5, 9, 12, 20), (11, 11, 14, 15, 16), (30, 30, 31, 31, 33))
    assert phase_spans(run) == [
        Span(*span)
        for span in (
            ("restart", 5, 9), ("restore", 9, 11), ("restart", 11, 14), ("restore", 14, 15), ("catch_up", 15, 20),
            ("restart", 30, 31), ("catch_up", 31, 33),
        )
    ]  # fmt: skip


def test_a_run_without_recoveries_has_no_phases(tmp_path):
    assert phase_spans(run_with(tmp_path)) == []
    assert phase_spans(Run("none", tmp_path / "none")) == []


def test_the_chart_of_the_pages_has_the_same_phases(tmp_path):
    run = run_with(tmp_path, (5, 6, 9, 12, 20))
    assert [tuple(each.values()) for each in charts.timeline(run)["phases"]] == [
        tuple(span) for span in phase_spans(run)
    ]


def rates(*committed: float) -> list[float | None]:
    found = commit_rate(pd.DataFrame({"committed_records": committed}))
    return [None if pd.isna(rate) else rate for rate in found]


def test_records_are_spread_over_the_time_since_the_commit_before():
    assert rates(0, 9, 0, 0, 30, 0, 8, 0) == [None, None, 10, 10, 10, 4, 4, None]
    assert rates(7, 5, 6) == [None, 5, 6]


def test_one_commit_has_no_rate():
    assert rates(0, 9, 0) == [None, None, None]
    assert rates(0, 0) == [None, None]


def test_the_chart_of_the_pages_has_that_rate(tmp_path):
    run = synthetic.make_run(tmp_path)
    committed, table = charts.timeline(run)["committed"], run.table("throughput")
    known = [rate for rate in committed if rate is not None]
    assert max(known) < table["committed_records"].max() / 5
    first = table["committed_records"][table["committed_records"] > 0].iloc[0]
    assert sum(known) == pytest.approx(table["committed_records"].sum() - first)
