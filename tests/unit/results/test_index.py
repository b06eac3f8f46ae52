"""The index lists what the store holds, whatever became of its file, and reads a run once."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path

import pytest

from results import index, store
from results.index import UNREADABLE, Row
from results.selection import Selection, choices, select
from results.verdict import Verdict
from tests.e2e.example_run import START_NS, write_failed_run, write_run, write_table

DAY_NS = 86_400 * 10**9


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFTERSHOCK_HOME", str(tmp_path))


def _index_file() -> Path:
    return store.home() / "runs-index.json"


def _forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(run: store.Run) -> Row:
        raise AssertionError(f"{run.run_id} was read again")

    monkeypatch.setattr(index, "row_of", forbidden)


def test_an_empty_store_has_no_rows():
    assert index.rows() == []


def test_a_row_says_what_the_run_says():
    write_run("one")
    (row,) = index.rows()
    assert (row.run_id, row.state, row.experiment, row.started_ns) == ("one", "done", "wordcount", START_NS)
    assert (row.engine, row.protocol, row.facts["records_committed"]) == ("structured-streaming", "query", 3_993_600)
    assert (row.utilization.predicted, row.utilization.low) == (0.826, 0.79)
    assert (row.verdicts, row.verdict) == ({"fail": 1, "unknown": 1, "pass": 3}, Verdict.FAIL)
    assert row.metrics["utilization"] == 0.8125
    assert row.metrics["detect_s"] == 1.5


def test_what_comes_back_from_the_file_is_what_was_put_there(monkeypatch: pytest.MonkeyPatch):
    write_run("one")
    write_failed_run("two", "no disk", started_ns=START_NS + 1)
    first = index.rows()
    _forbid_reading(monkeypatch)
    assert index.rows() == first
    assert [row.run_id for row in first] == ["two", "one"]


def test_only_new_runs_are_read_and_removed_ones_go(monkeypatch: pytest.MonkeyPatch):
    write_failed_run("one", "no disk")
    write_failed_run("two", "no disk")
    index.rows()
    store.discard(store.home() / "runs" / "two")
    write_failed_run("three", "no disk")
    read = []
    row_of = index.row_of
    monkeypatch.setattr(index, "row_of", lambda run: read.append(run.run_id) or row_of(run))
    assert {row.run_id for row in index.rows()} == {"one", "three"}
    assert read == ["three"]
    assert set(json.loads(_index_file().read_text())["runs"]) == {"one", "three"}


def test_a_run_that_was_replaced_is_read_again():
    run = write_failed_run("one", "no disk")
    index.rows()
    before = run.root.rename(run.root.with_name("old-one"))
    again = write_failed_run("one", "no network")
    times = os.stat(before / "status.json")
    os.utime(again.root / "status.json", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert {row.run_id: row.error for row in index.rows()}["one"] == "no network"


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "null", '{"version": 1}', '{"version": VERSION, "runs": {"one": {}}}', "\x00" * 50]
)
def test_a_damaged_index_is_built_again(damage: str):
    write_failed_run("one", "no disk")
    rows = index.rows()
    _index_file().write_text(damage.replace("VERSION", json.dumps(index.VERSION)))
    assert index.rows() == rows
    assert json.loads(_index_file().read_text())["version"] == index.VERSION


def test_an_index_of_another_version_is_built_again(monkeypatch: pytest.MonkeyPatch):
    write_failed_run("one", "no disk")
    index.rows()
    monkeypatch.setattr(index, "VERSION", "another")
    assert [row.run_id for row in index.rows()] == ["one"]
    assert json.loads(_index_file().read_text())["version"] == "another"


def test_an_index_that_cannot_be_kept_still_lists():
    write_failed_run("one", "no disk")
    _index_file().mkdir()
    (_index_file() / "x").touch()
    with pytest.raises(IsADirectoryError):
        _index_file().read_text()
    assert [row.run_id for row in index.rows()] == ["one"]


@pytest.mark.parametrize("status", ["", "[]", "{}", '{"state": "done", "started_ns": "soon"}', '{"state": "done"}'])
def test_a_damaged_status_costs_the_others_nothing(status: str):
    write_run("one")
    broken = write_failed_run("two", "no disk")
    (broken.root / "status.json").write_text(status)
    rows = {row.run_id: row for row in index.rows()}
    assert rows["one"].state == "done"
    assert (rows["two"].state, rows["two"].verdict) == (UNREADABLE, Verdict.UNKNOWN)
    assert "status.json" in rows["two"].error


def test_a_damaged_table_costs_the_others_nothing():
    write_run("one")
    broken = write_run("two")
    (broken.tables / "predictions.parquet").write_bytes(b"nothing")
    rows = {row.run_id: row for row in index.rows()}
    assert rows["one"].state == "done"
    assert rows["two"].state == UNREADABLE
    assert "table predictions of two is damaged" in rows["two"].error


def test_tables_of_another_version_are_said_to_be():
    run = write_run("one")
    faults = run.table("faults").drop(columns="outcome")
    faults.to_parquet(run.tables / "faults.parquet")
    (row,) = index.rows()
    assert row.error == "its tables are of another version: one lacks 'outcome'"


def test_a_run_that_failed_never_counts_as_passed():
    run = write_failed_run("one", "no disk")
    write_table(run, "verdicts", [{"check": "a", "table": "runs", "verdict": "pass"}])
    (row,) = index.rows()
    assert row.verdict is Verdict.UNKNOWN


def _row(run_id: str, day: int = 0, **facts: object) -> Row:
    verdicts = {facts.pop("verdict"): 1} if "verdict" in facts else {}
    return Row(run_id, "done", "wordcount", START_NS + day * DAY_NS, facts=facts, verdicts=verdicts)


ROWS = [
    _row("a", 0, engine="structured-streaming", recovery="query", faults=3, verdict="pass"),
    _row("b", 1, engine="dataflow", protocol="coordinated", faults=10, verdict="fail"),
    _row("c", 2, engine="dataflow", protocol="none", verdict="unknown"),
]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Selection(), "abc"),
        (Selection(engine="dataflow"), "bc"),
        (Selection(engine="dataflow", protocol="none"), "c"),
        (Selection(protocol="query"), "a"),
        (Selection(verdict="fail"), "b"),
        (Selection(experiment="another"), ""),
        (Selection(since=date(2026, 9, 22)), "bc"),
        (Selection(until=date(2026, 9, 22)), "ab"),
        (Selection(since=date(2026, 9, 22), until=date(2026, 9, 22)), "b"),
    ],
)
def test_lists_are_narrowed(wanted: Selection, expected: str):
    assert "".join(row.run_id for row in select(ROWS, wanted, "run")) == expected


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("started", "abc"),
        ("-started", "cba"),
        ("faults", "abc"),
        ("-faults", "bac"),
        ("verdict", "bca"),
        ("run", "abc"),
    ],
)
def test_lists_are_sorted_with_the_unknown_last(sort: str, expected: str):
    assert "".join(row.run_id for row in select(ROWS, Selection(), sort)) == expected


def test_choices_are_what_the_runs_have():
    assert choices(ROWS) == {
        "experiment": ["wordcount"],
        "engine": ["dataflow", "structured-streaming"],
        "protocol": ["coordinated", "none", "query"],
    }
