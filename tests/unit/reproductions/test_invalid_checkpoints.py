"""Shares of invalid checkpoints of `checkmate`, tables 3 and 4: each run counts once, since it has one kill."""

from __future__ import annotations

import pandas as pd
import pytest

from reproductions.catalogue import CATALOGUE
from reproductions.checkmate.checkpoints import checkpoint_counts
from reproductions.judging import judge
from reproductions.measured import Cell
from reproductions.reproduce import missing_runs
from reproductions.reproduction import Computed
from tests.unit.reproductions.runs import checkpoints, put_run
from tests.unit.results.synthetic import ns


@pytest.mark.parametrize(
    ("invalid", "verdict"),
    [
        ([(0, 110)], "unknown"),
        ([(30, 54)], "unknown"),
        ([(0, 54)] * 71, "unknown"),
        ([(0, 54)] * 72, "pass"),
        ([(0, 54)] * 3, "unknown"),
        ([(1, 54), (0, 54), (1, 54)], "unknown"),
        ([(1, 54), (1, 54)], "unknown"),
        ([(9, 54)] + [(0, 54)] * 9, "unknown"),
        ([(9, 54)] + [(0, 54)] * 74, "unknown"),
        ([(9, 54)] + [(0, 54)] * 75, "pass"),
        ([(1, 54)] * 113, "unknown"),
        ([(1, 54)] * 114, "pass"),
        ([(30, 54)] + [(0, 54)] * 3, "unknown"),
        ([(3, 54)] * 10, "unknown"),
        ([(6, 54)] * 10, "fail"),
        ([(5, 54), (6, 54), (7, 54), (0, 0)], "fail"),
        ([(0, 0)], "unknown"),
    ],
    ids=lambda each: each if isinstance(each, str) else f"{len(each)} runs from {each[0]}",
)
@pytest.mark.parametrize(("table", "name"), [("table-3", "q3.few_invalid"), ("table-4", "invalid.few")])
def test_a_share_of_invalid_checkpoints_has_the_limits_of_its_runs(table, name, invalid, verdict):
    """A kill that was not seen may make all invalid: few runs leave that open, whether they have any or none."""
    assert judged_counts(table, name, invalid)["verdict"] == verdict


@pytest.mark.parametrize(("runs", "passing"), [(3, 0), (75, 9)])
def test_further_invalid_checkpoints_never_show_that_they_are_few(runs, passing):
    counts = ([(1, 54)] * some + [(0, 54)] * (runs - some) for some in range(runs + 1))
    found = [judged_counts("table-4", "invalid.few", each)["verdict"] for each in counts]
    assert found == ["pass"] * passing + ["unknown"] * (runs + 1 - passing)


@pytest.mark.parametrize(
    ("invalid", "verdict"),
    [([(0, 200)], "unknown"), ([(0, 54)] * 148, "unknown"), ([(0, 54)] * 149, "fail"), ([(0, 54), (1, 54)], "pass")],
    ids=["one run", "148 runs", "149 runs", "one in the second run"],
)
def test_that_some_are_invalid_is_shown_by_one_and_refuted_by_many_runs_only(invalid, verdict):
    assert judged_counts("table-3", "q3.some_invalid", invalid)["verdict"] == verdict


def test_what_is_undecided_says_how_many_runs_it_takes():
    names = ("few_invalid", "some_invalid")
    few, some = (judged_counts("table-3", f"q3.{name}", [(0, 108)])["detail"] for name in names)
    assert "UNC on 2 workers: 0 of 108 invalid in 1 run, CIC" in few
    assert few.endswith("where no run has any, it takes 72 runs")
    assert some.endswith("chance could leave none in fewer than 149 runs")


def judged_counts(table: str, name: str, counts: list[tuple[int, int]]) -> dict[str, str | None]:
    """What a check makes of UNC and CIC in runs with so many invalid ones of so many checkpoints."""
    about = {"query": "q3", "workers": 2, "run_id": "it", "simulated": False}
    rows = [
        about
        | {"protocol": protocol, "replicate": i, "checkpoints": of, "invalid": few, "invalid_share": few / max(1, of)}
        for i, (few, of) in enumerate(counts)
        for protocol in ("UNC", "CIC")
    ]
    asked = {check.name: check for check in CATALOGUE[f"checkmate/{table}"].checks}[name]
    return judge(asked, Computed("it", pd.DataFrame(rows)))


@pytest.mark.parametrize(("checkpoints", "verdict"), [([12, 12], "pass"), ([12, 0], "unknown"), ([0, 0], "unknown")])
def test_a_run_without_a_checkpoint_does_not_show_that_all_are_valid(checkpoints, verdict):
    about = {"query": "q3", "protocol": "COOR", "workers": 2, "run_id": "it", "simulated": False}
    found = {"invalid": 0, "invalid_share": 0.0}
    rows = [about | found | {"replicate": i, "checkpoints": count} for i, count in enumerate(checkpoints)]
    asked = {check.name: check for check in CATALOGUE["checkmate/table-3"].checks}["q3.coordinated_all_valid"]
    assert judge(asked, Computed("it", pd.DataFrame(rows)))["verdict"] == verdict


def test_what_was_stored_in_an_outage_that_did_not_end_is_told_apart(home):
    experiment = next(each for each in missing_runs("checkmate/table-3") if each.engine.protocol_run != "coordinated")
    taken = checkpoints("op.0", [0.1] * 12, invalid=4)  # one every five seconds
    outage = {"recovery": 0, "fault": 0, "faults": 1, "death_ns": ns(47), "notice_ns": ns(48), "ready_ns": None}
    run = put_run(experiment, {"partition_checkpoints": taken, "recoveries": [outage]})
    (row,) = checkpoint_counts(Cell(experiment, run))
    assert (row["checkpoints"], row["invalid"]) == (9, 1)
    assert (row["in_outages"], row["invalid_in_outages"]) == (3, 3)
