"""If `aftershock results recompute` is killed at any change of files or the disk is full, it is the old or new run.

The command is whole but for Spark: in the place of its batch job another program writes the tables.
"""

import shutil
import signal
import sys
from importlib import import_module
from multiprocessing import get_context
from types import SimpleNamespace

import pytest

from aftershock.airflow import leftover_files
from aftershock.cli.program import main
from aftershock.run import batch_job
from aftershock.watch import clean
from infra.processes import owners
from results.runs import store
from tests.unit.interruptions import Interruption, at_every_change, places_of_changes
from tests.unit.marked_processes import wait_for
from tests.unit.results import synthetic

pytestmark = pytest.mark.extended

OLD, NEW = 6000.0, 7000.0
RUN = "run-1"
JOB = "import shutil, sys; shutil.copytree(sys.argv[1], sys.argv[2] + '/tables')"
ENDLESS = [sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '600'])"]
BEFORE_THE_CHECKS = 26  # changes; from there on a strike takes seconds


@pytest.fixture
def home(tmp_path, monkeypatch):
    for heavy in ("results.checks.judge", "results.views.report", "results.predictions.tables"):
        import_module(heavy)  # once, before the processes that are struck
    folder = tmp_path / "home"
    monkeypatch.setenv("AFTERSHOCK_HOME", str(folder))
    made = {rate: make_run(tmp_path / str(rate), rate) for rate in (OLD, NEW)}
    monkeypatch.setattr(batch_job, "ensure_jars", lambda: SimpleNamespace(connector=[]))
    monkeypatch.setattr(batch_job, "find_java", lambda: SimpleNamespace(home="/"))
    job = [sys.executable, "-c", JOB, str(made[NEW].tables)]
    monkeypatch.setattr(batch_job.spark, "submit_command", lambda _, __, root, orders, **options: [*job, root])
    shutil.copytree(made[OLD].root, folder / "runs" / RUN)
    return folder


def make_run(folder, rate):
    changes = {"runs": lambda frame: frame.assign(service_rate=rate)}
    run = synthetic.make_run(folder, run_id=RUN, kills=(8.3,), window_s=24.0, changes=changes)
    store.write_json(run.experiment_path, synthetic.experiment(window_s=24.0).model_dump(mode="json"))
    run.raw.mkdir()
    (run.raw / "query.jsonl").write_text("{}\n")
    run.report.write_text("the report of before")
    return run


def recompute():
    assert main(["results", "recompute", RUN]) in (0, 3)  # 3: the environment failed, said in one line


def put_back(home, before):
    shutil.rmtree(home)
    shutil.copytree(before, home)


def check_that_it_is_whole(run):
    """The old version or the new one, with everything that is of it, and only that."""
    rate = float(run.table("runs").service_rate[0])
    is_new = "recomputed_ns" in run.status().to_json()
    assert rate == (NEW if is_new else OLD)
    assert (run.report.read_text() != "the report of before") == is_new
    assert run.has("verdicts") == is_new
    assert (run.raw / "query.jsonl").read_text() == "{}\n"
    assert [path.name for path in run.root.rglob(".*")] == []


def processes_of(home):
    return [process for process in owners() if process.root.startswith(str(home))]


@pytest.fixture(scope="module")
def known():
    return {}


@pytest.fixture
def numbers(home, tmp_path, known):
    """Of the changes to strike at: all before the checks, one of their 500 documents, both sides of the exchange."""
    if not known:
        before = shutil.copytree(home, tmp_path / "unchanged")
        places = places_of_changes(recompute, home)
        put_back(home, before)
        known["exchange"] = max(number for number, place in enumerate(places, 1) if "CDLL" in place)
    return [*range(1, BEFORE_THE_CHECKS + 1), 200, known["exchange"], known["exchange"] + 1]


@pytest.mark.parametrize("interruption", Interruption)
def test_a_run_whose_results_are_computed_again_is_the_old_one_or_the_new_one(home, tmp_path, interruption, numbers):
    before = shutil.copytree(home, tmp_path / "before")
    for _ in at_every_change(recompute, home, interruption, numbers):
        check_that_it_is_whole(store.finished(RUN))
        leftover_files.sweep()
        assert {path.name for path in home.iterdir()} <= {"runs", "logs"}
        assert [path.name for path in (home / "runs").iterdir()] == [RUN]
        put_back(home, before)
    recompute()
    check_that_it_is_whole(store.finished(RUN))
    assert "recomputed_ns" in store.finished(RUN).status().to_json()


def test_the_job_of_a_recompute_that_was_killed_is_ended_by_clean_and_that_of_a_live_one_is_not(home, monkeypatch):
    monkeypatch.setattr(batch_job.spark, "submit_command", lambda *words, **options: ENDLESS)
    command = get_context("fork").Process(target=recompute)
    command.start()
    try:
        wait_for(lambda: len(processes_of(home)) == 2)
        assert "its run is alive" in [reason for traces, reason in clean.clean().kept if str(home) in traces.root]
        assert len(processes_of(home)) == 2
    finally:
        command.kill()
        command.join()
    assert command.exitcode == -signal.SIGKILL
    assert len(processes_of(home)) == 2
    said = clean.clean()
    assert [traces.processes for traces in said.removed if str(home) in traces.root] == [2]
    assert processes_of(home) == []
    assert {path.name for path in home.iterdir()} <= {"runs", "live", "logs"}
    check_that_it_is_whole(store.finished(RUN))


def test_the_job_of_a_recompute_whose_folder_was_swept_is_ended_by_clean_too(home, monkeypatch):
    """Any other command sweeps the folders of dead ones; the handle goes with them."""
    monkeypatch.setattr(batch_job.spark, "submit_command", lambda *words, **options: ENDLESS)
    command = get_context("fork").Process(target=recompute)
    command.start()
    try:
        wait_for(lambda: len(processes_of(home)) == 2)
    finally:
        command.kill()
        command.join()
    assert leftover_files.sweep() != []
    assert len(processes_of(home)) == 2
    clean.clean()
    assert processes_of(home) == []
