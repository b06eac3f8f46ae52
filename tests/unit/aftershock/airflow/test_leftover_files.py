"""What dead processes left in the home goes with `clean`, the logs of a run with `prune`; what is in use stays."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from aftershock.airflow import leftover_files, orchestrate
from aftershock.cli import program
from aftershock.run import ending, lease, steps
from experiments.errors import EnvironmentFailure
from experiments.locks import locked
from infra.launch import REPOSITORY
from results.runs import store
from tests.unit.marked_processes import wait_for

pytestmark = pytest.mark.usefixtures("no_traces")
KILLED = """
import os, sys
from pathlib import Path
from aftershock.run import ending, lease
from experiments.locks import locked
from results.runs import store
lock = locked(ending.lock_path("dead"), "x", stays=False)
with lease.lease(store.live_directory("dead")), lock, store.scratch() as s:
    (s / "file").write_text("x")
    print("ready", flush=True)
    sys.stdin.read()
"""


def file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    return path


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_what_a_killed_process_held_goes_once_it_is_dead(home, capsys):
    (home / "live").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    left = files(home)
    assert len(left) == 4
    assert leftover_files.sweep() == [], "its process lives"
    process.kill()
    process.wait()
    assert files(home) == left
    assert program.main(["clean"]) == 0
    (first, second, third) = capsys.readouterr().out.splitlines()
    assert (first, second) == ("removed live/.dead.lease", "removed live/.dead.teardown")
    assert third.startswith("removed .scratch-")
    assert files(home) == set()


def test_the_lock_of_a_run_that_is_there_stays(home):
    steps.begin({}, "run-1")
    lease.lease_path(store.live_directory("run-1")).touch()
    before = files(home)
    assert leftover_files.sweep() == []
    assert files(home) == before


def test_a_lease_that_is_swept_while_it_is_taken_is_taken_anew(home):
    """The sweep may remove a lease that was opened and is not held yet."""
    live_directory = store.live_directory("run-1")
    path = lease.lease_path(live_directory)
    path.parent.mkdir(parents=True)
    program = (
        "import sys; from pathlib import Path; from aftershock.run import lease\nwith lease.lease(Path(sys.argv[1])):"
    )
    program += "\n    print('held', flush=True); sys.stdin.read()"
    with lease.lease(live_directory):
        waiting = subprocess.Popen(
            [sys.executable, "-c", program, str(live_directory)],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        opened = f"/proc/{waiting.pid}/fd"
        wait_for(lambda: any(os.path.realpath(f"{opened}/{fd}") == str(path) for fd in os.listdir(opened)))
    assert waiting.stdout.readline() == "held\n"
    assert lease.state_of(live_directory) is lease.Lease.HELD
    waiting.communicate()


def test_a_lease_that_is_taken_during_the_sweep_is_held_to_the_end(home, monkeypatch):
    """Without it, the first step of the run would take another experiment than the command's."""
    live_directory = store.live_directory("run-1")
    file(lease.lease_path(live_directory))
    (home / "airflow").mkdir()
    with ExitStack() as command:

        def meanwhile(folder):
            command.enter_context(lease.lease(live_directory))
            return []

        monkeypatch.setattr(leftover_files, "_databases", meanwhile)
        leftover_files.sweep()
        assert lease.state_of(live_directory) is lease.Lease.HELD


def test_a_serve_that_begins_while_logs_are_removed_begins_after_that(home, monkeypatch):
    log = file(home / "airflow" / "logs" / "scheduler.log")
    remove, lock = leftover_files._remove, home / "airflow" / leftover_files.SERVING

    def removed_beside_a_serve(path):
        with pytest.raises(EnvironmentFailure, match="still held"), locked(lock, "it", limit_s=0.0, shared=True):
            pass
        return remove(path)

    monkeypatch.setattr(leftover_files, "_remove", removed_beside_a_serve)
    assert leftover_files.sweep() == ["airflow/logs/scheduler.log"]
    assert not log.exists()
    with leftover_files.serving():
        assert leftover_files.is_served()


def test_databases_and_logs_of_commands_whose_run_is_not_there_go(home, capsys):
    folder = home / "airflow" / "command-line"
    stray = [file(folder / name) for name in ("run-1.db", "run-1.db-wal", "run-1.json", "run-1.logs/x/task.log")]
    stay = [file(folder / name) for name in ("template.db", "template.db-shm", "run-2.db", "run-3.db", "run-3.json")]
    steps.begin({}, "run-2")
    with lease.lease(store.live_directory("run-3")):
        assert program.main(["clean"]) == 0
    assert [path for path in stray if path.exists()] == []
    assert all(path.exists() for path in stay)
    assert "removed airflow/command-line/run-1.db" in capsys.readouterr().out


def test_logs_of_components_go_unless_somebody_serves(home):
    logs = home / "airflow" / "logs"
    components = {file(logs / "scheduler.log"), file(logs / "dag_processor" / "2026-11-22" / "x.log")}
    tasks = file(logs / "dag_id=benchmark" / "run_id=manual__1" / "task_id=begin" / "attempt=1.log")
    with leftover_files.serving(), leftover_files.serving():
        assert leftover_files.sweep() == []
    assert set(leftover_files.sweep()) == {"airflow/logs/dag_processor", "airflow/logs/scheduler.log"}
    assert not any(path.exists() for path in components)
    assert tasks.exists()


def test_a_link_is_removed_and_not_what_it_leads_to(home, tmp_path):
    kept = file(tmp_path / "elsewhere" / "file")
    logs = home / "airflow" / "logs"
    logs.mkdir(parents=True)
    (logs / "triggerer").symlink_to(kept.parent)
    assert leftover_files.sweep() == ["airflow/logs/triggerer"]
    assert kept.exists()


def finished(run_id, ended_ns, dag_run=None):
    status = {"run_id": run_id, "experiment": "e", "state": "done", "started_ns": ended_ns, "ended_ns": ended_ns}
    store.write_json(store.stored(run_id).root / "status.json", status | {"dag_run": dag_run})


def test_the_logs_of_a_pruned_run_go_with_it(home, capsys):
    for number, dag_run in enumerate((None, "manual__1", "manual__2/../../../outside", "shared", "shared"), 1):
        finished(f"run-{number}", number, dag_run)
    of_tasks = home / "airflow" / "logs" / "dag_id=benchmark"
    doomed = {
        file(home / "logs" / "run-1.log"),
        file(home / "logs" / "run-1-recompute.log"),
        file(home / "logs" / "run-2.log"),
        file(of_tasks / "run_id=manual__1" / "task_id=begin" / "attempt=1.log"),
    }
    others = {
        file(home / "logs" / "run-5.log"),
        file(of_tasks / "run_id=manual__2" / "x.log"),
        file(of_tasks / "run_id=shared" / "x.log"),
        file(home / "airflow" / "outside" / "x.log"),
    }
    assert program.main(["results", "prune", "--keep", "1", "--dry-run", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert all(path.exists() for path in doomed | others)
    assert program.main(["results", "prune", "--keep", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["logs"] == planned["logs"]
    assert sorted(told["removed"]) == ["run-1", "run-2", "run-3", "run-4"]
    assert set(told["logs"]) == {
        "logs/run-1.log",
        "logs/run-1-recompute.log",
        "logs/run-2.log",
        "airflow/logs/dag_id=benchmark/run_id=manual__1",
    }
    assert not any(path.exists() for path in doomed)
    assert all(path.exists() for path in others)


def test_a_run_that_another_process_removes_meanwhile_keeps_no_other_from_going(home, monkeypatch, capsys):
    for number in (1, 2):
        finished(f"run-{number}", number)
    remove = store.remove

    def second(run_id):
        remove(run_id)
        remove(run_id)

    monkeypatch.setattr(store, "remove", second)
    assert program.main(["results", "prune", "--keep", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == ["run-1", "run-2"]
    assert store.all_finished() == []


def test_the_logs_of_a_dag_run_that_was_cleared_and_goes_on_stay_when_its_older_run_goes(home, capsys):
    finished("run-1", 1, "cleared")
    steps.begin({}, "run-2", "cleared")
    written = file(home / "airflow" / "logs" / "dag_id=benchmark" / "run_id=cleared" / "x.log")
    assert program.main(["results", "prune", "--keep", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == ["run-1"]
    assert written.exists()


def test_a_run_that_is_forgotten_takes_what_airflow_kept_of_its_tasks(home):
    folder = home / "airflow" / "command-line"
    gone, kept = file(folder / "run-1.logs" / "task.log"), file(folder / "run-11.logs" / "task.log")
    others = [file(folder / "run-1.db"), file(folder / "run-1.json")]
    orchestrate.forget("run-1")
    assert (gone.exists(), kept.exists()) == (False, True)
    assert not any(path.exists() for path in others)


def test_nothing_is_left_of_a_run_that_began_and_ended(home):
    with lease.lease(store.live_directory("run-1")):
        steps.begin({}, "run-1")
        steps.teardown("run-1")
    assert not ending.lock_path("run-1").exists()
    assert list((home / "live").iterdir()) == []
