"""Checks of a run that searched for the sustainable rate."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from results.checks.catalogue import checks_for
from results.runs.store import Run
from tests.unit.results import synthetic
from tests.unit.results.judging import every, verdict_of


def searching_run(
    tmp_path: Path, low: float | None = 5657.0, high: float | None = 5907.0, end: str | None = "closed"
) -> Run:
    """A run without faults whose load lag kept up with, at a share of the rate that it found."""
    found = {"sustainable_rate": low, "unsustainable_rate": high, "search_end": end}
    changes = {"runs": lambda frame: frame.assign(**found), "throughput": every("lag_records", 900.0)}
    run = synthetic.make_run(tmp_path, kills=(), changes=changes)
    synthetic.write_table(run, "probes", synthetic.probes())
    return run


SEARCHING = synthetic.experiment(load={"mode": "sustainable"}, faults={})


def test_a_search_that_closed_passes_every_check_of_it(tmp_path: Path) -> None:
    run = searching_run(tmp_path)
    for name in ("probes.schema", "probes.values", "sustainable.bracketed", "sustainable.sustained"):
        assert verdict_of(name, run, tmp_path, SEARCHING)["verdict"] == "pass", name
    names = {check.name for check in checks_for(SEARCHING)}
    assert {"sustainable.bracketed", "sustainable.sustained", "probes.schema"} <= names
    assert not {"utilization.estimates_agree", "faults.proved"} & names, "which have no meaning there"
    without = {check.name for check in checks_for(synthetic.experiment())}
    assert not {name for name in without if name.startswith(("sustainable.", "probes."))}


@pytest.mark.parametrize(
    ("name", "table", "column"),
    [("sustainable.bracketed", "runs", "sustainable_rate"), ("sustainable.sustained", "runs", "load_rate")],
)
def test_a_number_that_cannot_be_does_not_end_the_judging(name: str, table: str, column: str, tmp_path: Path) -> None:
    """No rate is 0, and nothing can be divided by one."""
    run = searching_run(tmp_path)
    synthetic.write_table(run, table, run.table(table).assign(**{column: 0.0}))
    row = verdict_of(name, run, tmp_path, SEARCHING)
    assert (row["verdict"], row["detail"]) == ("unknown", "float division by zero")


@pytest.mark.parametrize(
    ("low", "high", "end", "verdict", "detail"),
    [
        (5657.0, 6169.0, "closed", "fail", "gap"),
        (5657.0, 6169.0, "probes", "unknown", "the bracket is not closed: load.probes were used up"),
        (5657.0, 6169.0, "generator", "unknown", "the bracket is not closed: the generator did not deliver"),
        (5657.0, 6169.0, "commits", "unknown", "there were too few samples of lag"),
        (5657.0, 6169.0, None, "unknown", "the reason why the search ended is not recorded"),
        (5657.0, None, "generator", "unknown", "no rate failed: the generator did not deliver the next rate"),
        (None, 500.0, "probes", "unknown", "no rate was sustained"),
    ],
)
def test_an_open_bracket_does_not_pass(
    tmp_path: Path, low: float, high: float, end: str | None, verdict: str, detail: str
) -> None:
    row = verdict_of("sustainable.bracketed", searching_run(tmp_path, low, high, end), tmp_path, SEARCHING)
    assert row["verdict"] == verdict
    assert detail in row["detail"]


def test_rates_and_shares_are_told_to_three_digits(tmp_path: Path) -> None:
    experiment = synthetic.experiment(load={"mode": "sustainable", "share": 0.125}, faults={})
    run = searching_run(tmp_path, 0.405, 0.42)
    told = verdict_of("sustainable.bracketed", run, tmp_path, experiment)["observed"]
    assert told == "0.405 records/s sustained, 0.42 not, 3.7 % apart"
    told = verdict_of("sustainable.sustained", run, tmp_path, experiment)["expected"]
    assert told.endswith(", at 12.5 % of the rate found")


def test_lag_that_grows_in_the_window_fails_the_rate_that_was_found(tmp_path: Path) -> None:
    run = searching_run(tmp_path)
    synthetic.write_table(run, "throughput", run.table("throughput").pipe(growing_lag))
    row = verdict_of("sustainable.sustained", run, tmp_path, SEARCHING)
    assert row["verdict"] == "fail"
    assert row["observed"].startswith("lag grows by 3 % of the load in the window")


@pytest.mark.parametrize(("intervals", "verdict"), [(3.9, "pass"), (4.1, "fail")])
def test_lag_that_stays_high_in_the_window_fails_the_rate_that_was_found(tmp_path, intervals, verdict) -> None:
    run = searching_run(tmp_path)
    high = intervals * synthetic.experiment().engine.checkpoint_interval_s * 1.1 * synthetic.RATE
    synthetic.write_table(run, "throughput", run.table("throughput").assign(lag_records=high))
    row = verdict_of("sustainable.sustained", run, tmp_path, SEARCHING)
    assert row["verdict"] == verdict
    assert row["observed"].startswith("lag grows by 0 % of the load")


@pytest.mark.parametrize(("growth", "verdict"), [(0.0, "pass"), (0.05, "fail")])
def test_that_lag_rises_between_two_commits_is_no_growth(tmp_path: Path, growth: float, verdict: str) -> None:
    """A query that keeps up commits every 40 s what fell due until then: six times in the window."""
    rate = 1.1 * synthetic.RATE

    def committed(frame: pd.DataFrame) -> pd.DataFrame:
        since_s = frame["second"].astype(int) % 40
        return frame.assign(
            committed_records=(since_s == 0) * 40 * rate, lag_records=rate * (since_s + growth * frame["second"])
        )

    run = searching_run(tmp_path)
    synthetic.write_table(run, "throughput", run.table("throughput").pipe(committed))
    assert verdict_of("sustainable.sustained", run, tmp_path, SEARCHING)["verdict"] == verdict


def growing_lag(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(lag_records=900.0 + frame["second"].astype(float) * 0.03 * 1.1 * synthetic.RATE)
