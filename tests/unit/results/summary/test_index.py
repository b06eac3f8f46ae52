"""The index lists what the store holds, even if its own file is damaged or missing, and reads a run once."""

from __future__ import annotations

import fcntl
import json
import os
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from results.runs import store
from results.runs.state import RunState
from results.summary import index
from results.summary.index import IndexRow
from results.tables import reading
from results.verdict import Verdict
from results.views.listing import listing
from results.views.selection import Selection, choices, select
from tests.e2e.example_run import START_NS, write_failed_run, write_run, write_table

ROOT = Path(__file__).parents[4]
DAY_NS = 86_400 * 10**9

pytestmark = pytest.mark.usefixtures("home")


def _index_file() -> Path:
    return store.home() / "runs-index.json"


def _forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(run: store.Run) -> IndexRow:
        raise AssertionError(f"{run.run_id} was read again")

    monkeypatch.setattr(index, "row_of", forbidden)


def _read_by(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    read: list[str] = []
    row_of = index.row_of
    monkeypatch.setattr(index, "row_of", lambda run: read.append(run.run_id) or row_of(run))
    return read


def test_an_empty_store_has_no_rows():
    assert index.rows() == []


def test_a_row_says_what_the_run_says():
    write_run("one")
    (row,) = index.rows()
    assert (row.run_id, row.state, row.experiment, row.started_ns) == ("one", "done", "wordcount", START_NS)
    assert (row.engine, row.protocol, row.recovery) == ("structured-streaming", None, "query")
    assert row.facts["records_committed"] == 3_993_600
    assert (row.struck, row.facts["faults"]) == (3, 3)
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
    read = _read_by(monkeypatch)
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


def test_who_cannot_wait_is_told_what_the_others_status_says():
    write_run("old", started_ns=START_NS - DAY_NS)
    write_failed_run("new", "no disk")
    rows = index.rows(limit_s=0.0)
    assert [(row.run_id, row.state, row.experiment, row.metrics) for row in rows] == [
        ("new", RunState.UNREAD, "wordcount", {}),
        ("old", RunState.UNREAD, "wordcount", {}),
    ]
    assert not _index_file().exists()
    index.complete()
    assert [row.state for row in index.rows(limit_s=0.0)] == ["failed", "done"]
    assert index.rows(limit_s=0.0) == index.rows()


def test_within_a_limit_the_newest_runs_are_read_and_kept(monkeypatch: pytest.MonkeyPatch):
    for number in range(4):
        write_failed_run(f"run-{number}", "no disk", started_ns=START_NS + number)
    clock = iter(range(100))
    monkeypatch.setattr(index.time, "monotonic", lambda: next(clock))  # each look at it is a second later
    rows = index.rows(limit_s=5.0)
    assert [row.state for row in rows] == ["failed", "failed", RunState.UNREAD, RunState.UNREAD]
    assert set(json.loads(_index_file().read_text())["runs"]) == {"run-3", "run-2"}
    read = _read_by(monkeypatch)
    assert {row.state for row in index.rows()} == {"failed"}
    assert read == ["run-1", "run-0"]


def test_a_run_that_could_not_be_read_is_tried_again_when_its_tables_are_others():
    broken = write_run("one")
    whole = (broken.tables / "runs.parquet").read_bytes()
    (broken.tables / "runs.parquet").write_bytes(b"nothing")
    assert [row.state for row in index.rows()] == [RunState.UNREADABLE]
    (broken.tables / "runs.parquet").write_bytes(whole)
    assert [row.state for row in index.rows(limit_s=0.0)] == [RunState.UNREAD]
    index.complete()
    assert [row.state for row in index.rows(limit_s=0.0)] == ["done"]


def _last_written() -> tuple[int, int, int]:
    """Which file the index is, and when it was written; reading it may change when it was read."""
    found = _index_file().stat()
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def test_a_run_that_cannot_be_read_is_not_read_at_each_look(monkeypatch: pytest.MonkeyPatch):
    broken = write_run("one")
    (broken.tables / "runs.parquet").write_bytes(b"nothing")
    rows = index.rows()
    kept = _last_written()
    read = _read_by(monkeypatch)
    assert index.rows(limit_s=60.0) == rows
    index.complete()
    assert read == []
    assert index.rows() == rows
    assert read == ["one"], "who can wait tries again: the disk may have been at fault"
    assert _last_written() == kept, "nothing has changed, so nothing is written"


def test_what_another_has_read_meanwhile_is_not_lost(monkeypatch: pytest.MonkeyPatch):
    for name in ("one", "two"):
        write_failed_run(name, "no disk")
    row_of = index.row_of

    def another_reads_meanwhile(run: store.Run) -> IndexRow:
        monkeypatch.setattr(index, "row_of", row_of)
        write_failed_run("three", "no disk")
        index.rows()
        return row_of(run)

    monkeypatch.setattr(index, "row_of", another_reads_meanwhile)
    index.rows()
    assert set(json.loads(_index_file().read_text())["runs"]) == {"one", "two", "three"}


def test_the_index_makes_the_home_of_a_fresh_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("AFTERSHOCK_HOME", str(tmp_path / "new"))
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(ROOT / "published"))
    shown = {row.run_id for row in index.rows(with_published=True)}
    assert set(json.loads(_index_file().read_text())["runs"]) == shown != set()
    assert not caplog.records


def test_two_do_not_complete_the_index_at_once(monkeypatch: pytest.MonkeyPatch):
    write_failed_run("one", "no disk")
    read = _read_by(monkeypatch)
    with (store.home() / "runs-index.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        index.complete()
        assert read == []
    index.complete()
    assert read == ["one"]


def test_a_table_is_read_once_for_all_that_a_row_says(monkeypatch: pytest.MonkeyPatch):
    run, read = write_run("one"), []
    table = store.Run.table
    monkeypatch.setattr(store.Run, "table", lambda self, name: read.append(name) or table(self, name))
    index.row_of(run)
    assert sorted(read) == sorted(set(read))
    assert "runs" in read


@pytest.mark.parametrize(
    "damage",
    [
        *("", "{", "[]", "null", '{"version": 1}', "\x00" * 50),
        *('{"version": VERSION, "runs": {"one": {}}}', '{"version": VERSION, "runs": 1e400}'),
    ],
)
def test_a_damaged_index_is_built_again(damage: str):
    write_failed_run("one", "no disk")
    rows = index.rows()
    _index_file().write_text(damage.replace("VERSION", json.dumps(index.VERSION)))
    assert index.rows() == rows
    assert json.loads(_index_file().read_text())["version"] == index.VERSION


@pytest.mark.extended
@pytest.mark.parametrize(
    ("field", "damage"),
    [
        *(("started_ns", damage) for damage in ("x", None, -1)),
        *(("experiment", ["x"]), ("state", 7), ("run_id", "another"), ("schema_version", "x"), ("error", 5)),
        ("struck", -1),
        *(("facts", None), ("facts", {"faults": [1]}), ("metrics", {"utilization": "x"}), ("metrics", 5)),
        *(("verdicts", {"pass": "x"}), ("utilization", None), ("utilization", {})),
        ("utilization", {"measured": [], "predicted": None, "low": None, "high": None, "model": None}),
    ],
)
def test_a_damaged_row_is_read_again_and_the_others_are_not(
    monkeypatch: pytest.MonkeyPatch, field: str, damage: object
):
    write_run("one")
    write_failed_run("two", "no disk")
    rows = index.rows()
    document = json.loads(_index_file().read_text())
    document["runs"]["one"]["row"][field] = damage
    _index_file().write_text(json.dumps(document))
    read = _read_by(monkeypatch)
    assert select(index.rows(), Selection()) == rows
    assert index.rows() == rows
    assert read == ["one"]


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


@pytest.mark.parametrize(
    "status",
    [
        *("", "[]", "{}", '{"state": "done", "started_ns": "soon"}', '{"state": "done"}'),
        '{"state": "done", "started_ns": 1, "experiment": ["x"]}',
    ],
)
def test_a_damaged_status_costs_the_others_nothing(status: str):
    write_run("one")
    broken = write_failed_run("two", "no disk")
    (broken.root / "status.json").write_text(status)
    rows = {row.run_id: row for row in index.rows()}
    assert rows["one"].state == "done"
    assert (rows["two"].state, rows["two"].verdict) == (RunState.UNREADABLE, Verdict.UNKNOWN)
    assert "status.json" in rows["two"].error
    assert (rows["two"].started_ns, listing([rows["two"]], 200).splitlines()[1].split()[0]) == (None, "-")
    assert [row.run_id for row in select(index.rows(), Selection(until=date(2030, 1, 1)))] == ["one"]
    assert [row.run_id for row in select(index.rows(), Selection())] == ["one", "two"]
    assert index.rows(0.0) == index.rows(), "from the file"


@pytest.mark.parametrize("error", [OSError("input/output error"), pa.ArrowNotImplementedError("no such codec"),
                                   pa.ArrowInvalid("broken"), UnicodeDecodeError("utf-8", b"x", 0, 1, "no text")],
                         ids=repr)  # fmt: skip
def test_whatever_is_wrong_with_a_table_costs_the_others_nothing(monkeypatch: pytest.MonkeyPatch, error: Exception):
    write_run("one")
    write_run("two")
    texts = reading._texts

    def read(path: Path, schema: pa.Schema) -> list[str]:
        if "two" in path.parts:
            raise error
        return texts(path, schema)

    monkeypatch.setattr(reading, "_texts", read)
    rows = {row.run_id: row for row in index.rows()}
    assert rows["one"].state == "done"
    assert rows["two"].state == RunState.UNREADABLE
    assert str(error) in rows["two"].error


def test_tables_of_another_version_are_said_to_be():
    run = write_run("one")
    faults = run.table("faults").drop(columns="outcome")
    faults.to_parquet(run.tables / "faults.parquet")
    (row,) = index.rows()
    assert row.error == (
        "table faults of one is damaged: it lacks the column outcome, as one of another version of the code does; "
        "compute its results again, or remove its run"
    )


def test_a_run_that_failed_never_counts_as_passed():
    run = write_failed_run("one", "no disk")
    write_table(run, "verdicts", [{"check": "a", "table": "runs", "verdict": "pass"}])
    (row,) = index.rows()
    assert row.verdict is Verdict.UNKNOWN


def _row(run_id: str, day: int, verdict: str, struck: int | None = None, **facts: object) -> IndexRow:
    started_ns = START_NS + day * DAY_NS
    return IndexRow(run_id, "done", "wordcount", started_ns, facts=facts, verdicts={verdict: 1}, struck=struck)


ROWS = [
    _row("a", 0, "pass", 3, engine="structured-streaming", recovery="query"),
    _row("b", 1, "fail", 10, engine="dataflow", protocol="coordinated"),
    _row("c", 2, "unknown", engine="dataflow", protocol="none"),
]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Selection(), "abc"),
        (Selection(engine="dataflow"), "bc"),
        (Selection(engine="dataflow", protocol="none"), "c"),
        (Selection(recovery="query"), "a"),
        (Selection(protocol="query"), ""),
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
        "protocol": ["coordinated", "none"],
        "recovery": ["query"],
    }
