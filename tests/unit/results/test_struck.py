"""If a command is killed at any change of the store, or the disk is full there, no run is there in part.

The next call does what was asked for, and leaves nothing of the one before.
"""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from experiments.errors import BadInput
from results.regression import records
from results.runs import exchange, store
from results.summary import index
from results.tables import schema
from tests.unit.interruptions import Interruption, at_every_change
from tests.unit.results.regression.past import write_run

OLD, NEW, OTHER = 6000.0, 7000.0, 5000.0
SERIES = {
    "experiment": "words",
    "experiment_digest": "d1",
    "machine": "a machine",
    "metric": "service_rate",
    "unit": "1/s",
}
COMPARED = {"regression_id": "regression-20261120-010203-abcd", "recorded_ns": 1, "verdict": "same", "experiments": []}
DOCUMENT = records.RecordedComparison.model_validate(COMPARED)
COUNTS = {"candidates": 5, "baseline": 9}
FIGURES = ("candidate_median", "baseline_median", "effect", "low", "high", "p_value")
JUDGED = {"better": "higher", "scale": "ratio", "verdict": "same", "why": ""} | COUNTS | dict.fromkeys(FIGURES, 0.5)
CHANGED = {"run_id": "run-1", "verdict": "worse", "started_ns": 1, "before": 2.0, "after": 1.0, "p_value": 0.01}
TABLES = {"regression": [SERIES | JUDGED] * 20, "change_points": [SERIES | CHANGED] * 20}


def two_runs(home):
    shutil.rmtree(home, ignore_errors=True)
    write_run("run-1", 1, facts={"service_rate": OLD})
    write_run("run-2", 2, facts={"service_rate": OTHER})


def listed():
    """What a list of runs shows, by the index and by the runs themselves; each run must be readable whole."""
    rows = index.rows()
    assert [row.error for row in rows] == [None] * len(rows)
    assert {run.run_id for run in store.all_finished()} == {row.run_id for row in rows}
    return {row.run_id: row.metrics["service_rate"] for row in rows}


def leftover_files(home):
    """What is in the home besides its folders, the index and its locks."""
    known = {"runs", "regressions", "live", "runs-index.json", "runs-index.lock", "runs-index.saving"}
    inside = [path.name for folder in ("runs", "regressions") for path in (home / folder).glob("*")]
    return {path.name for path in home.iterdir()} - known | {name for name in inside if name.startswith(".")}


def replace():
    with store.scratch() as folder:
        new = store.Run("run-1", folder / "run-1" / "result")
        shutil.copytree(store.finished("run-1").root, new.root)
        table = store.finished("run-1").table("runs")
        new.table_path("runs").unlink()
        new.write_table("runs", pa.Table.from_pandas(table.assign(service_rate=NEW), schema=schema.TABLES["runs"]))
        store.write_json(new.root / "status.json", new.status().to_json() | {"recomputed_ns": 1})
        store.replace(new)


def remove():
    store.remove("run-1")


def keep():
    records.keep(DOCUMENT, TABLES)


@pytest.mark.extended
@pytest.mark.parametrize("interruption", Interruption)
@pytest.mark.parametrize("at_once", [True, False], ids=["exchange", "three-steps"])
def test_a_run_that_is_replaced_is_the_old_one_or_the_new_one(home, monkeypatch, interruption, at_once):
    if not at_once:
        monkeypatch.setattr(store, "exchange", exchange.in_three_steps)
    two_runs(home)
    for _ in at_every_change(replace, home, interruption):
        with store.scratch():  # the next command that needs one
            pass
        assert listed() in ({"run-1": OLD, "run-2": OTHER}, {"run-1": NEW, "run-2": OTHER})
        assert leftover_files(home) == set()
        two_runs(home)
    replace()
    assert listed() == {"run-1": NEW, "run-2": OTHER}
    assert leftover_files(home) == set()


@pytest.mark.extended
@pytest.mark.parametrize("interruption", Interruption)
def test_a_run_that_is_removed_is_there_whole_or_gone(home, interruption):
    two_runs(home)
    for _ in at_every_change(remove, home, interruption):
        assert listed() in ({"run-1": OLD, "run-2": OTHER}, {"run-2": OTHER})
        if store.is_finished("run-1"):
            remove()
        with store.scratch():
            pass
        assert listed() == {"run-2": OTHER}
        assert leftover_files(home) == set()
        two_runs(home)


@pytest.mark.extended
@pytest.mark.parametrize("interruption", Interruption)
def test_a_comparison_is_recorded_whole_or_not_at_all(home, interruption):
    two_runs(home)
    for _ in at_every_change(keep, home, interruption):
        found = records.documents()
        assert found in ([], [DOCUMENT])
        for regression in records.all_recorded():
            assert {name: regression.rows(name) for name in TABLES} == TABLES
        if not found:
            keep()
        with store.scratch():
            pass
        assert records.documents() == [DOCUMENT]
        assert leftover_files(home) == set()
        two_runs(home)


@pytest.mark.extended
@pytest.mark.parametrize("interruption", Interruption)
@pytest.mark.parametrize("list_them", [index.rows, index.complete])
def test_the_index_says_what_the_runs_say(home, interruption, list_them):
    two_runs(home)
    for number in at_every_change(list_them, home, interruption):
        write_run(f"later-{number}", number, facts={"service_rate": OTHER})
        everything = {"run-1": OLD, "run-2": OTHER, f"later-{number}": OTHER}
        assert listed() == everything
        assert set(json.loads((home / "runs-index.json").read_text())["runs"]) == set(everything)
        assert leftover_files(home) == set()
        two_runs(home)


@pytest.mark.extended
@pytest.mark.parametrize("interruption", Interruption)
def test_a_document_is_the_old_one_or_the_new_one(home, interruption):
    path, old, new = home / "document.json", {"a": "x" * 9000}, {"a": "y" * 9000}
    seen = []
    for _ in at_every_change(lambda: store.write_json(path, new), home, interruption):
        seen.append(store.read_json(path) if path.exists() else None)
        store.write_json(path, old)
    assert seen[-1] == new
    assert all(document in (None, old, new) for document in seen)


@pytest.mark.extended
@pytest.mark.parametrize("other", [replace, remove])
@pytest.mark.parametrize("code", [replace, remove])
@pytest.mark.parametrize("at_once", [True, False], ids=["exchange", "three-steps"])
def test_two_commands_at_once_leave_a_whole_run_or_none(home, monkeypatch, code, other, at_once):
    if not at_once:
        monkeypatch.setattr(store, "exchange", exchange.in_three_steps)
    two_runs(home)
    for _ in at_every_change(code, home, other):
        found = listed()
        assert found.pop("run-2") == OTHER
        assert found in ({"run-1": NEW}, {})
        assert remove in (code, other) or found
        assert leftover_files(home) == set()
        two_runs(home)


def test_a_run_that_another_command_removes_meanwhile_is_no_run(home, monkeypatch):
    two_runs(home)
    rename = Path.rename
    monkeypatch.setattr(Path, "rename", lambda path, to: (rename(path, home / "elsewhere"), rename(path, to)))
    with pytest.raises(BadInput, match="the id of a finished run"):
        store.remove("run-1")


def test_a_sweep_tells_what_it_removed(home):
    with store.scratch() as used:
        for name in (".scratch-dead", ".scratch-gone"):
            (home / name / "run-1").mkdir(parents=True)
        (home / ".scratch-dead.lock").touch()
        assert sorted(path.name for path in store.sweep()) == [".scratch-dead", ".scratch-gone"]
        assert store.sweep() == []
        assert used.is_dir()
    assert list(home.iterdir()) == []


def test_a_scratch_folder_that_somebody_uses_is_left_alone(home):
    with store.scratch() as first:
        (first / "work").touch()
        with store.scratch() as second:
            assert first != second
        assert (first / "work").exists()
    assert leftover_files(home) == set()
