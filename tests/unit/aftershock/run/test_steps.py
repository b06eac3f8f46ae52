"""The life of a run's directory around its steps, without a cluster: begun, noted when a step fails, published."""

import errno
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest

from aftershock.run import admission, batch_job, derive, live_run, step_notes, steps
from chaos.fault_plan import FaultPlan
from experiments import spec
from experiments.errors import BadInput, EnvironmentFailure
from experiments.spec import ClusterSpec, Experiment
from infra import tokens
from infra.cluster import HANDLE_FILE
from infra.local import LocalDriver
from infra.services import startup
from journal.events.common import EntriesLost, Failed
from journal.events.injector import Disarmed
from journal.writer import Journal
from results.runs import json_files, step_times, store
from results.runs.machine import experiment_digest, machine_class
from results.tables.schema import SCHEMA_VERSION
from spark_jobs.calibration import Calibration
from tests.unit.example_events import batch_committed

DOCUMENT = {"name": "mine", "window_s": 30}


@steps.step
def broken_step(run_id):
    raise EnvironmentFailure("the broker is gone", "look at its log")


@steps.step
def refused_step(run_id):
    raise BadInput("cluster.workers", 99, "at most 3")


def test_long_checkpoint_intervals_are_waited_for():
    """Within fifteen minutes, no query commits twice whose checkpoints are ten minutes apart."""
    limits_s = []
    live = SimpleNamespace(
        experiment=Experiment(engine={"checkpoint_interval_s": 600}),
        wait=lambda what, met, services, limit_s, usual_s: limits_s.append(limit_s),
    )
    steps._await_calibration(live, Path("calibration.json"))
    steps._await_commits(live, step_times.STEADY_COMMITS, 0)
    assert limits_s == [900 + 6 * 600, 900 + 2 * 600]


def test_a_run_begins_with_its_experiment_on_record():
    run_id = steps.begin(DOCUMENT)
    run = store.live(run_id)
    assert run_id.startswith("mine-")
    wanted = Experiment(**DOCUMENT)
    filled_in = wanted.model_copy(update={"engine": wanted.engine.filled_in})
    assert Experiment.model_validate(store.read_json(run.root / "experiment.json")) == filled_in
    status = run.status()
    assert (status.run_id, status.experiment, status.state) == (run_id, "mine", "running")
    assert status.experiment_digest == experiment_digest(Experiment(**DOCUMENT))
    assert status.machine == machine_class()
    assert status.machine_speed > 0
    assert status.ended_ns is status.error is status.exit_code is status.dag_run is status.attempt is None
    assert status.schema_version == SCHEMA_VERSION
    assert store.all_finished() == []


def test_a_run_knows_the_dag_run_that_began_it_and_its_try():
    run_id = steps.begin(DOCUMENT, dag_run="manual__2026-11-20", attempt=2)
    steps.teardown(run_id)
    status = store.finished(run_id).status()
    assert (status.dag_run, status.attempt) == ("manual__2026-11-20", 2)


def test_a_step_that_fails_since_its_run_was_torn_down_leaves_nothing_of_it():
    @steps.step
    def outlived_step(run_id):
        steps.teardown(run_id, "ended from elsewhere")
        raise EnvironmentFailure("the handle is gone", "run again")

    run_id = steps.begin(DOCUMENT)
    with pytest.raises(EnvironmentFailure, match="the handle is gone"):
        outlived_step(run_id)
    assert not store.live_directory(run_id).exists()
    assert store.finished(run_id).status().error == "ended from elsewhere"


def test_runs_that_begin_in_the_same_second_differ():
    assert len({steps.begin(DOCUMENT) for _ in range(3)}) == 3


def test_bad_input_leaves_nothing(home):
    with pytest.raises(BadInput, match="window_s"):
        steps.begin({"window_s": -1})
    with pytest.raises(BadInput, match="lower-case letters"):
        steps.begin(DOCUMENT, "../elsewhere")
    assert list(home.iterdir()) == []


def test_a_checkpoint_interval_that_no_window_holds_is_refused_before_anything_is_made(home):
    """A run that has such an interval all the same can still be read."""
    document = DOCUMENT | {"engine": {"checkpoint_interval_s": 30.5}}
    assert spec.validate(document).window_s == 30
    with pytest.raises(BadInput, match=r"^engine\.checkpoint_interval_s: 30\.5 .* at most window_s, 30 s: ") as refusal:
        steps.begin(document)
    assert refusal.value.exit_code == 2
    assert list(home.iterdir()) == []
    steps.begin(DOCUMENT | {"engine": {"checkpoint_interval_s": 30}})


@pytest.mark.parametrize(
    ("field", "fault"),
    [("processes", {"rate": 0.1}), ("events", {"at": 1, "targets": ["worker-1"]}), ("bursts", {"at": 1, "hosts": 1})],
)
def test_a_fault_that_the_driver_cannot_inject_is_refused_before_anything_is_made(home, field, fault):
    with pytest.raises(BadInput, match="with driver local") as mistake:
        steps.begin({"faults": {field: [fault, {"kind": "power-off", **fault}]}})
    assert (mistake.value.field, mistake.value.value) == (f"faults.{field}.1.kind", "power-off")
    assert not list(home.rglob("experiment.json"))


def test_more_listed_faults_than_a_step_can_read_again_are_refused_before_anything_is_made(home, monkeypatch):
    monkeypatch.setattr(json_files, "MOST_BYTES", 20_000)
    events = [{"at": number, "targets": ["worker-1"]} for number in range(100)]
    document = spec.validate({"faults": {"events": events}}).model_dump(mode="json")
    with pytest.raises(BadInput, match="fewer: with them the experiment has") as refusal:
        steps.begin(document)
    assert (refusal.value.field, refusal.value.value) == ("faults", "100 listed faults")
    assert not (home / "live").exists()
    store.write_json(home / "experiment.json", document)
    assert (home / "experiment.json").stat().st_size == json_files.size_of(document) > 20_000


def test_a_fault_plan_that_no_step_can_read_again_is_refused_before_anything_is_made(home, monkeypatch):
    document = {"window_s": 200, "faults": {"processes": [{"rate": 0.5}]}}
    steps.begin(document, "run-1")
    monkeypatch.setattr(json_files, "MOST_BYTES", 20_000)
    with pytest.raises(BadInput, match="make fewer: as JSON, a fault plan may have 20,000 bytes") as refusal:
        steps.begin(document, "run-2")
    assert (refusal.value.field, refusal.value.value) == ("faults", "200 faults or more")
    assert not store.live_directory("run-2").exists()


def test_a_fault_without_a_kind_is_held_against_the_driver_as_a_kill(home, monkeypatch):
    monkeypatch.setattr(LocalDriver, "obstacle", lambda _, spec, kind, options: f"anything but {kind}")
    with pytest.raises(BadInput, match="anything but kill") as mistake:
        steps.begin({"faults": {"bursts": [{"at": 1, "hosts": 1}]}})
    assert (mistake.value.field, mistake.value.value) == ("faults.bursts.0.kind", "kill")


@pytest.mark.parametrize("lacking", ["find_java", "ensure_jars"])
def test_without_java_or_jars_no_run_begins(home, monkeypatch, lacking):
    def missing():
        raise EnvironmentFailure("none was found", "run `make setup`")

    monkeypatch.setattr(admission, lacking, missing)
    with pytest.raises(EnvironmentFailure, match="none was found"):
        steps.begin(DOCUMENT)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("publish", [False, True])
def test_a_run_id_is_used_once(publish):
    steps.begin(DOCUMENT, "run-1")
    if publish:
        steps.teardown("run-1")
    with pytest.raises(BadInput, match="an id that no other run has"):
        steps.begin(DOCUMENT, "run-1")


def test_a_run_that_a_full_disk_keeps_from_its_begin_leaves_nothing(home, monkeypatch):
    """A DAG run whose first step fails has no id of a run that its teardown could end."""
    write = store.write_json

    def written(path, document):
        if path.name == "status.json":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, document)

    monkeypatch.setattr(store, "write_json", written)
    with pytest.raises(OSError, match="No space left on device"):
        steps.begin(DOCUMENT, "run-1")
    assert list((home / "live").iterdir()) == []


def test_a_run_whose_step_failed_is_published_with_its_error_and_logs(home):
    steps.begin(DOCUMENT, "run-1")
    (store.live("run-1").raw / "query.jsonl").write_text("{}\n")
    with pytest.raises(EnvironmentFailure):
        broken_step("run-1")
    assert steps.teardown("run-1", error="a later error that the first one caused") == "failed"
    run = store.finished("run-1")
    status = run.status()
    assert (status.state, status.error) == ("failed", "the broker is gone; look at its log")
    assert status.exit_code == 3
    assert status.ended_ns >= status.started_ns
    assert (run.raw / "query.jsonl").exists()
    assert json.loads((run.root / "failure.json").read_text())["step"] == "broken_step"
    assert list((home / "live").iterdir()) == []


def test_a_step_that_refuses_input_gives_its_exit_code():
    steps.begin(DOCUMENT, "run-1")
    with pytest.raises(BadInput):
        refused_step("run-1")
    steps.teardown("run-1")
    assert store.finished("run-1").status().exit_code == 2


def test_an_error_from_outside_the_steps_fails_the_run_too():
    steps.begin(DOCUMENT, "run-1")
    assert steps.teardown("run-1", error="interrupted") == "failed"
    status = store.finished("run-1").status()
    assert (status.error, status.exit_code) == ("interrupted", 3)


def test_a_run_without_an_error_is_done():
    steps.begin(DOCUMENT, "run-1")
    assert steps.teardown("run-1") == "done"
    assert store.finished("run-1").status().exit_code == 0


def test_teardown_a_second_time_changes_nothing():
    steps.begin(DOCUMENT, "run-1")
    steps.teardown("run-1", error="interrupted")
    before = store.finished("run-1").status()
    assert steps.teardown("run-1") == "failed"
    assert store.finished("run-1").status() == before


def test_only_a_run_with_a_handle_has_a_cluster_to_destroy():
    steps.begin(DOCUMENT, "run-1")
    live_run = steps.LiveRun("run-1")
    assert not live_run.provisioned
    live_run.root.mkdir(parents=True)
    (live_run.root / HANDLE_FILE).touch()
    assert live_run.provisioned


@pytest.mark.parametrize(
    ("usual_s", "limit_s", "told"),
    [
        (16.0, 180.0, "; usually about 16 s; given up after 180 s"),
        (None, 60.0, "; given up after 60 s"),
        (None, inf, ""),
    ],
)
def test_a_wait_is_told_with_what_it_may_take(monkeypatch, caplog, usual_s, limit_s, told):
    steps.begin(DOCUMENT, "run-1")
    looks = iter([False, True])
    monkeypatch.setattr(live_run, "LINE_EVERY_S", -1.0)
    monkeypatch.setattr(live_run, "POLL_S", 0.0)
    monkeypatch.setattr(live_run.LiveRun, "dead_service", lambda *_: None)
    caplog.clear()  # of what the machine has too little of
    with caplog.at_level("INFO", logger="aftershock.run.live_run"):
        live_run.LiveRun("run-1").wait("the faults to be prepared", lambda: next(looks), set(), limit_s, usual_s)
    assert caplog.messages == [f"waiting for the faults to be prepared (0 s{told})"]


def test_a_service_that_ended_after_what_was_awaited_did_not_die(monkeypatch):
    """As the injector of a run without faults: armed, and gone before one looks whether it is still there."""
    steps.begin(DOCUMENT, "run-1")
    live_run, looked = steps.LiveRun("run-1"), []
    monkeypatch.setattr(steps.LiveRun, "dead_service", lambda *_: EnvironmentFailure("it died", "look"))

    def armed_at(look):
        looked.append(look)
        return len(looked) == look

    live_run.wait("the faults to be prepared", lambda: armed_at(2), {"injector"}, 60.0)
    with pytest.raises(EnvironmentFailure, match="it died"):
        live_run.wait("the faults to be prepared", lambda: armed_at(-1), {"injector"}, 60.0)


def on_a_cluster():
    """A run whose folder of the cluster is there, and a handle of it that has yet to be saved."""
    live_run = steps.LiveRun(steps.begin(DOCUMENT, "run-1"))
    live_run.root.mkdir()
    return live_run, startup.handle_of(ClusterSpec(), "run-1", live_run.root, subnet=250, network="127.0.250")


@pytest.fixture
def measured(home):
    """A run whose window is over, on a cluster of which no process runs any more, with its journals."""
    live_run, handle = on_a_cluster()
    handle.save()
    store.write_json(live_run.plan_path, FaultPlan(1, 2).to_json())
    Journal(live_run.journal_path("injector")).record(Disarmed())
    Journal(live_run.journal_path("query")).record(batch_committed(time.time_ns(), numInputRows=1))
    return live_run


def test_a_run_that_lost_entries_of_its_journals_does_not_go_on_to_be_judged(measured, monkeypatch):
    started = []
    monkeypatch.setattr(batch_job, "start", lambda run, owner: started.append(owner.run_id))  # a JVM
    steps.stop("run-1")
    assert started == ["run-1"]
    Journal(measured.journal_path("query")).record(EntriesLost(7, "no space left"))
    Journal(measured.journal_path("query")).record(EntriesLost(2, "no space left"))
    told = r"query.jsonl lacks 9 entries, which could not be written \(no space left\); if the disk"
    with pytest.raises(EnvironmentFailure, match=told):
        steps.stop("run-1")


@pytest.mark.parametrize("one_process", [True, False])
def test_what_comes_next_is_loaded_beside_the_tables_by_a_process_that_goes_on(measured, monkeypatch, one_process):
    loading, tabulating = threading.Event(), threading.Event()
    monkeypatch.setattr(derive, "load", lambda: loading.set() or tabulating.wait(60.0))

    def carry_out(*_, **__):
        assert loading.wait(60.0) if one_process else not loading.is_set()
        tabulating.set()

    monkeypatch.setattr(batch_job, "carry_out", carry_out)
    if one_process:
        monkeypatch.setenv(steps.ONE_PROCESS, "yes")
    steps.tabulate("run-1")
    assert loading.is_set() == one_process


@pytest.mark.parametrize(
    ("step", "told"),
    [("collect", "the Spark job that saves input and output"), ("tabulate", "the Spark job that writes the result")],
)
def test_what_the_batch_job_is_awaited_for_is_noted_while_it_is(measured, monkeypatch, step, told):
    noted = []
    monkeypatch.setattr(batch_job, "carry_out", lambda *_, **__: noted.append(step_notes.read("run-1").awaited.what))
    getattr(steps, step)("run-1")
    assert noted[0].startswith(told)
    assert step_notes.read("run-1").awaited is None


def test_what_stop_waits_for_is_noted_while_it_is(measured, monkeypatch):
    noted = []
    monkeypatch.setattr(batch_job, "start", lambda run, owner: None)  # a JVM
    monkeypatch.setattr(steps.LiveRun, "stop", lambda *_: noted.append(step_notes.read("run-1").awaited.what))
    steps.stop("run-1")
    ends = [f"the {service} to end" for service in ("generator", "query", "sampler")]
    assert noted == ["the injector to heal what is still struck", *ends]
    assert step_notes.read("run-1").awaited is None


def test_what_provision_waits_for_is_noted_until_it_fails(monkeypatch):
    noted = []

    class Busy:
        def provision(self, spec, run_id, root, tell):
            for what in ("hosts", "worker-1 to join, 1 of 2"):
                tell(what)
                noted.append(step_notes.read(run_id).awaited.what)
            raise EnvironmentFailure("no worker came", "wait")

    run_id = steps.begin(DOCUMENT)
    monkeypatch.setattr(live_run, "driver_of", lambda name: Busy())
    with pytest.raises(EnvironmentFailure, match="no worker came"):
        steps.provision(run_id)
    assert noted == ["hosts", "worker-1 to join, 1 of 2"]
    assert step_notes.read(run_id).awaited is None


@pytest.mark.extended
def test_steps_are_loaded_without_what_only_some_of_them_need():
    heavy = "{'matplotlib', 'great_expectations'}"
    told = f"import sys, aftershock.run.steps; print({heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout == "set()\n"


@pytest.mark.parametrize(("cost_s", "told"), [(0.0023, "0.0023"), (0.0020004, "0.0020004"), (0.5, "0.5")])
def test_an_interval_that_is_too_short_is_refused_by_a_bound_that_can_be_used(cost_s, told):
    short = spec.validate({"engine": {"checkpoint_interval_s": 0.002}})
    with pytest.raises(BadInput, match=f"allowed: more than the checkpoint cost, {told} s as measured here"):
        steps._check_calibration(short, Calibration(0.42, cost_s, 0.5))


@pytest.mark.parametrize("kind", ["link", "FIFO"])
def test_a_log_that_is_no_file_is_told_instead_of_read(tmp_path, kind):
    (tmp_path / "secret").write_text("root:x:0:0")
    (tmp_path / "logs").mkdir()
    path = tmp_path / "logs" / "query.log"
    path.symlink_to(tmp_path / "secret") if kind == "link" else os.mkfifo(path)
    assert f"is a {kind}" in live_run.complaint(tmp_path, "logs/query.log")
    path.unlink()
    assert live_run.complaint(tmp_path, "logs/query.log") == "no output"
    path.write_bytes(b"ValueError: \xff\nlast\n")
    assert live_run.complaint(tmp_path, "logs/query.log") == "ValueError: \ufffd"


def test_a_service_that_gave_up_is_told_in_its_own_first_words(monkeypatch):
    live_run, handle = on_a_cluster()
    handle.save()
    logs = live_run.gateway / "logs"
    logs.mkdir(parents=True)
    (logs / "query.log").write_text("Error: of no interest\n")
    monkeypatch.setattr(steps.LiveRun, "running", lambda self: {"broker"})
    assert "query on the gateway died (Error: of no interest)" in str(live_run.dead_service({"query"}))
    journal = Journal(live_run.journal_path("query"))
    journal.record(Failed("an object can't be written at s3://nobody/runs: NoSuchBucket; look there"))
    journal.record(Failed("the coordinator died, and all that it knew of checkpoints with it"))
    words = "an object can't be written at s3://nobody/runs: NoSuchBucket; look there"
    told = f"query on the gateway died ({words}); see query.log of the run"
    assert str(live_run.dead_service({"query", "broker"})) == told


def test_broker_and_master_of_a_borrowed_cluster_are_not_looked_for_on_the_gateway(monkeypatch):
    live_run, owned = on_a_cluster()
    replace(owned, driver="external", token=tokens.new("external")).save()
    monkeypatch.setattr(steps.LiveRun, "running", lambda self: {"query"})
    assert live_run.dead_service({"query", "broker", "spark-master"}) is None
    assert "generator on the gateway died" in str(live_run.dead_service({"query", "broker", "generator"}))


def test_copies_keep_out_of_the_domains_that_a_cluster_lists(monkeypatch):
    """What the cluster lists is known only after the experiment as it was given has been checked."""
    listed = {"worker-1": ("a",), "worker-2": ("b",), "worker-3": ("a", "b"), "worker-4": ("a", "b")}
    changed = spec.load("ppa-partially-active", [])
    faults = changed.faults.model_copy(update={"hosts": listed})
    monkeypatch.setattr(admission, "with_listed_domains", lambda given: given.model_copy(update={"faults": faults}))
    with pytest.raises(BadInput, match=r"engine.standby: 2 .* 16 of 16 copies have none"):
        steps.begin(changed.model_dump(mode="json"), "run-1")
