"""Phases of recoveries and the rate of commits along the time axis of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from results.runs.store import Run
from results.summary.findings import BETWEEN
from results.tables.schema import RUN_TABLES
from results.views import charts
from results.views.time_axis import Span, commit_rate, phase_spans
from tests.unit.results import synthetic

WINDOW_S = 60.0
OUTAGE = {"recovery": 0, "fault": 0, "faults": 1}
COMMIT = dict.fromkeys(("batch", "duration_s", "checkpoint_s", "processing_s"), 0) | dict.fromkeys(
    ("in_window", "undisturbed"), True
)


def run_with(folder: Path, *recoveries: tuple[float | None, ...]) -> Run:
    """A run with recoveries whose moments, from death to normal, are given in seconds of the window."""
    run = synthetic.make_run(folder, kills=(8.3,), window_s=WINDOW_S)
    rows = [
        OUTAGE | {"recovery": i, "fault": i} | moments(**dict(zip(BETWEEN, each, strict=True)))
        for i, each in enumerate(recoveries)
    ]
    write(run, "recoveries", rows)
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


GLOBAL = {"engine": "dataflow", "recovery": "global"}
PASSIVE = {"engine": "dataflow", "recovery": "passive"}
DOWN = ((8, 12, "lost", None), (12, 13, "detect", None), (13, 16, "restart", None))  # a fault at second 12


def rates(
    folder: Path,
    *commits: tuple[float, float, int],
    ledger: tuple[tuple[float, float, str, int | None], ...] = (),
    outages: tuple[tuple[float, float | None], ...] = (),
    window_s: int = 24,
    **facts: Any,
) -> list[float | None]:
    """The line of a run with these commits (begun, committed, records), stretches of the ledger, and outages."""
    run = synthetic.make_run(folder, window_s=window_s, changes={"runs": lambda table: table.assign(**facts)})
    write(
        run, "checkpoints", [COMMIT | moments(started=a, completed=b) | {"records": count} for a, b, count in commits]
    )
    spans = [moments(start=a, end=b) | {"seconds": b - a, "class": kind, "batch": of} for a, b, kind, of in ledger]
    write(run, "ledger", spans)
    write(run, "recoveries", [OUTAGE | moments(death=death, ready=ready) for death, ready in outages])
    found = commit_rate(run, pd.DataFrame({"second": range(window_s)}))
    return [None if np.isnan(rate) else round(float(rate), 6) for rate in found]


def moments(**seconds: float | None) -> dict[str, int | None]:
    return {f"{name}_ns": None if at is None else synthetic.ns(at) for name, at in seconds.items()}


def write(run: Run, name: str, rows: list[dict[str, Any]]) -> None:
    run.write_table(name, RUN_TABLES[name].of(rows))


def test_what_a_commit_adds_is_spread_over_the_time_since_the_commit_before(tmp_path):
    assert rates(tmp_path, (-6, 4, 50), (5, 14, 80), (14, 26, 120), window_s=16) == [5] * 4 + [8] * 10 + [10] * 2


def test_the_line_is_0_while_the_query_is_down_and_in_work_that_a_fault_undid(tmp_path):
    assert rates(tmp_path, (0, 8, 80), (16, 24, 80), ledger=DOWN) == [10] * 8 + [0] * 8 + [10] * 8


def test_the_line_runs_on_in_a_batch_that_outlived_a_fault(tmp_path):
    assert rates(tmp_path, (0, 8, 80), (8, 24, 80), ledger=((8, 12, "lost", 1),)) == [10] * 8 + [5] * 16


def test_a_dataflow_that_goes_back_keeps_nothing_that_was_done_since_its_last_commit(tmp_path):
    found = rates(tmp_path, (0, 8, 80), (8, 24, 80), outages=((12, 16),), **GLOBAL)
    assert found == [10] * 8 + [0] * 8 + [10] * 8


def test_where_survivors_work_on_the_line_is_never_above_the_rate_at_which_they_work(tmp_path):
    steady = [(second, second + 4, 40) for second in range(0, 24, 4)]
    assert rates(tmp_path, *steady, ledger=DOWN, outages=((8.5, 18),), **PASSIVE) == [10] * 24


def test_what_is_committed_during_an_outage_was_done_before_the_fault(tmp_path):
    found = rates(tmp_path, (0, 8, 80), (8, 13, 40), (13, 24, 80), outages=((12, 16),), **GLOBAL)
    assert found == [10] * 12 + [0] * 4 + [10] * 8


def test_outages_that_overlap_count_once(tmp_path):
    found = rates(tmp_path, (0, 8, 80), (8, 24, 80), outages=((9, 16), (12, 14)), **GLOBAL)
    assert found == [10] * 8 + [0] * 8 + [10] * 8


def test_after_the_last_commit_the_line_ends(tmp_path):
    assert rates(tmp_path, (0, 8, 80)) == [10] * 8 + [None] * 16
    assert rates(tmp_path / "in-a-second", (0, 8.5, 85)) == [10] * 8 + [None] * 16


def test_up_to_the_end_of_an_outage_after_the_last_commit_it_is_0(tmp_path):
    assert rates(tmp_path, (0, 8, 80), ledger=DOWN) == [10] * 8 + [0] * 8 + [None] * 8
    assert rates(tmp_path / "never-back", (0, 8, 80), outages=((12, None),), **GLOBAL) == [10] * 8 + [0] * 16
    assert rates(tmp_path / "survivors", (0, 8, 80), outages=((12, 16),), **PASSIVE) == [10] * 8 + [None] * 16


def test_without_a_commit_there_is_no_line(tmp_path):
    assert rates(tmp_path, ledger=DOWN) == [None] * 24


@pytest.mark.parametrize("facts", [{}, GLOBAL, PASSIVE])
def test_no_record_is_drawn_that_was_not_committed_and_none_twice(tmp_path, facts):
    commits = ((0, 2.5, 31), (2.6, 5.25, 17), (9.5, 13.75, 90), (18.1, 22, 5))
    ledger = (
        (5.3, 7.9, "lost", None),
        (7.9, 8.1, "detect", None),
        (8.1, 9.5, "restart", None),
        (14, 18, "detect", None),
    )
    found = rates(tmp_path, *commits, ledger=ledger, outages=((7.9, 9.5), (14.2, 18.05)), **facts)
    assert sum(rate for rate in found if rate is not None) == pytest.approx(sum(records for *_, records in commits))


def test_the_chart_of_the_pages_has_that_rate(tmp_path):
    run = synthetic.make_run(tmp_path)
    committed, recoveries = charts.timeline(run)["committed"], run.table("recoveries")
    down = [
        second
        for death_ns, ready_ns in zip(recoveries["death_ns"], recoveries["ready_ns"], strict=True)
        for second in range(-((synthetic.START_NS - death_ns) // 10**9), (ready_ns - synthetic.START_NS) // 10**9)
    ]
    assert len(down) > 20
    assert {committed[second] for second in down} == {0.0}
    last = int((run.table("checkpoints")["completed_ns"].max() - synthetic.START_NS) // 10**9)
    assert None not in committed[:last]
    assert set(committed[last:]) == {None}
