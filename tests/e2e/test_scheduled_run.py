"""A night under Airflow's real scheduler, through the deaths of those who watch it: runs, tables, a word on each."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import yaml
from playwright.sync_api import expect

from aftershock.airflow import environment
from aftershock.airflow.dag_run_ids import Request
from aftershock.run.live_run import LiveRun
from aftershock.watch import live
from infra.processes import members
from results.runs import store
from results.tables.schema import TABLES
from tests.e2e.airflow_server import LIMIT_S, Server, served_airflow, wait
from tests.e2e.browser import logged_in_browser, needs_chromium, screenshot
from tests.e2e.mail import mail_server

pytestmark = pytest.mark.extended

REPOSITORY = Path(__file__).parents[2]
SECRET = "hunter2-hunter2"  # the password of the mail server
NAME, LOST = "words-batches-query-kills", "lost-batches-query-kills"
MATRIX = {
    "common": {"window_s": 70, "load": {"mode": "rate", "rate": 800}},
    "workloads": {"lost": {"workload": {"corpus": "/no/such/text"}}, "words": {}},
    "engines": {"batches": {}},
    "protections": {"query": {}},
    "faults": {"kills": {"faults": {"processes": [{"rate": 0.012, "heal_after": 2}]}}},
    "seeds": [9],
}


@dataclass
class Night:
    """What became of one night with a run that works and one whose input does not exist."""

    dag_run: str
    state: str
    run: store.Run

    @property
    def path(self) -> str:
        return f"/api/v2/dags/nightly/dagRuns/{self.dag_run}"


@pytest.fixture(scope="module")
def mail():
    with mail_server() as server:
        yield server


@pytest.fixture(scope="module")
def served(tmp_path_factory, mail):
    home = tmp_path_factory.mktemp("scheduled")
    (home / "airflow" / "config").mkdir(parents=True)
    shutil.copy(REPOSITORY / "docs" / "examples" / "airflow_local_settings.py", home / "airflow" / "config")
    connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": mail.port, "login": "me", "password": SECRET}
    connection["extra"] = {"disable_tls": True, "disable_ssl": True}
    night = f"0 {(time.gmtime().tm_hour + 12) % 24} * * *"  # as far away as can be
    with served_airflow(home, AIRFLOW_CONN_SMTP_DEFAULT=json.dumps(connection), AFTERSHOCK_NIGHT=night) as server:
        yield server


def kill(process, *words):
    """SIGKILL the processes below this one whose command line has all of the words."""
    below = [child for child in process.children(recursive=True) if all(word in _command_of(child) for word in words)]
    assert below, f"no {words} to kill"
    for child in below:
        with suppress(psutil.NoSuchProcess):  # it has ended with its parent, which was killed just now
            child.kill()


def _command_of(process):
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):  # it has just ended
        return ""


def events(run_id):
    path = store.live(run_id).raw / "query.jsonl"
    return [json.loads(line)["event"] for line in path.read_text().splitlines()] if path.exists() else []


def open_window():
    """The id of the run whose measurement window is open, if there is one."""
    for plan in store.home().glob(f"live/{NAME}-*/result/raw/plan.json"):
        if time.time_ns() > store.read_json(plan)["window_start_ns"]:
            return plan.parents[2].name
    return None


def not_yet_over(served, dag_run):
    assert served.call(f"/api/v2/dags/nightly/dagRuns/{dag_run}")["state"] in ("queued", "running")


@pytest.fixture(scope="module")
def night(served: Server, tmp_path_factory) -> Night:
    """Two runs; in the window of the second one triggerer, scheduler and query driver are killed."""
    matrix = tmp_path_factory.mktemp("matrix") / "matrix.yaml"
    matrix.write_text(yaml.safe_dump(MATRIX, sort_keys=False))
    served.switch_on("benchmark")
    dag_run = served.trigger("nightly", {"matrix": str(matrix)})
    run_id = wait("the window to open", lambda: open_window() or not_yet_over(served, dag_run))
    parent = psutil.Process(served.process.pid)
    kill(parent, "airflow", "triggerer")
    kill(parent, "airflow", "scheduler")
    before = events(run_id).count("driver-started")
    handle = store.read_json(store.live_directory(run_id) / "cluster" / "handle.json")
    _kill_query_driver(handle["token"])
    wait("the query driver to come back", lambda: events(run_id).count("driver-started") > before)
    return Night(dag_run, served.state_at_its_end("nightly", dag_run), store.finished(run_id))


def _kill_query_driver(token):
    for pid in members(f"{token}/gateway/query"):
        command = psutil.Process(pid).cmdline()
        if any(word.endswith("streaming/driver.py") for word in command) and "infra.services.supervisor" not in command:
            os.kill(pid, 9)


def test_the_run_goes_on_without_those_who_watched_it(served, night):
    status = night.run.status()
    assert status.state == "done"
    verdicts = dict(night.run.table("verdicts")[["check", "verdict"]].itertuples(index=False))
    state = served.call(f"/api/v2/dags/benchmark/dagRuns/{status.dag_run}")["state"]
    assert state == ("failed" if "fail" in verdicts.values() else "success")
    for check in ("ledger.adds_up", "faults.proved", "quality.nothing_lost", "quality.nothing_wrong"):
        assert verdicts[check] == "pass", verdicts
    assert len(night.run.table("faults")) == 2


def test_the_death_of_the_driver_is_a_recovery_of_its_own(night):
    ledger = night.run.table("ledger")
    without_a_fault = ledger[(ledger["class"] == "restart") & ledger["fault"].isna()]
    assert without_a_fault["seconds"].sum() > 1


def test_a_run_that_cannot_begin_stops_neither_the_others_nor_the_publishing(served, night):
    assert night.state == "failed"
    mapped = served.call(f"{night.path}/taskInstances/run/listMapped")["task_instances"]
    states = {one["rendered_map_index"]: one["state"] for one in mapped}
    good = served.call(f"/api/v2/dags/benchmark/dagRuns/{night.run.status().dag_run}")["state"]
    assert states == {f"{LOST}-9": "failed", f"{NAME}-9": good}
    assert served.call(f"{night.path}/taskInstances/publish")["state"] == "success"
    assert served.call(f"{night.path}/taskInstances/judge")["state"] == "failed"


def test_each_result_table_is_published_with_its_runs(served, night):
    found = served.call("/api/v2/assets/events?source_dag_id=nightly&limit=50")["asset_events"]
    assert {event["name"]: event["extra"]["runs"] for event in found} == {
        f"aftershock_{table}": [night.run.run_id] if night.run.has(table) else [] for table in TABLES
    }


def test_the_regression_follows_the_tables(served, night):
    def ran():
        return served.call("/api/v2/dags/regression/dagRuns")["dag_runs"]

    (dag_run,) = wait("the DAG regression", ran)
    assert served.state_at_its_end("regression", dag_run["dag_run_id"]) == "success"
    (document,) = store.home().glob("regressions/*/regression.json")
    (entry,) = store.read_json(document)["experiments"]
    assert (entry["experiment"], entry["verdict"]) == (NAME, "unknown")  # one run says nothing of change


def test_what_the_night_has_against_its_runs_is_mailed(mail, night):
    (message,) = wait("the mail", lambda: mail.received)
    assert message["subject"] == "nightly: judge failed"
    text = message.get_body().get_content()
    said = r"workload\.corpus: .*/no/such/text.* is not usable; allowed: a file or folder that exists"
    assert re.search(rf"[12] of 2 runs are not good: no run came of it \({said}\); http://127\S+/runs/\S+lost", text)


def test_run_and_dag_run_lead_to_each_other(served, night):
    dag_run = night.run.status().dag_run
    assert dag_run.endswith(f"{NAME}-9")
    links = served.call(f"/api/v2/dags/benchmark/dagRuns/{dag_run}/taskInstances/judge/links")["extra_links"]
    page = f"{served.address}/plugin/aftershock/aftershock/runs/{night.run.run_id}"
    assert links == {"Results of the run": page}


def test_a_figure_of_a_paper_is_rebuilt_by_its_id(served):
    dag_run = served.trigger("reproduce", {"id": "utilization/fig-04"})
    assert served.state_at_its_end("reproduce", dag_run) == "success"
    assert list(store.home().glob("reproductions/utilization/fig-04/*.verdicts.json"))


@needs_chromium
def test_the_run_is_seen_in_airflow(served, night):
    with logged_in_browser(served.address) as context:
        page = context.new_page()
        page.goto(f"{served.address}/plugin/aftershock/aftershock/runs/{night.run.run_id}")
        frame = page.frame_locator("iframe[title=Aftershock]")
        expect(frame.get_by_role("heading", level=1)).to_contain_text(night.run.run_id, timeout=90_000)
        screenshot(page, "scheduled-run")


@needs_chromium
def test_the_abort_switch_undoes_what_is_held_and_ends_the_run(served):
    """A worker is frozen for longer than the window, so that nothing but the abort thaws it."""
    run_id = "held"
    frozen = {"at": 2, "kind": "pause", "targets": ["worker-1"], "heal_after": 300}
    load = {"load.mode": "rate", "load.rate": 50}
    conf = {"run_id": run_id, "window_s": 280, "faults.processes": [], "faults.events": [frozen]} | load
    dag_run = served.trigger("benchmark", conf)
    wait("the run", lambda: run_id in store.all_live())
    with logged_in_browser(served.address) as context:
        page = context.new_page()
        page.emulate_media(color_scheme="dark")
        page.goto(f"{served.address}/aftershock/live/{run_id}")
        held = page.locator(".host", has_text="worker-1").get_by_text("frozen")
        held.wait_for(timeout=LIMIT_S * 1000)
        token = store.read_json(store.live_directory(run_id) / "cluster" / "handle.json")["token"]
        screenshot(page, "scheduled-live-run-dark")
        page.get_by_role("link", name="Abort this run").click()
        page.get_by_label("I want to end this run").check()
        page.get_by_role("button", name="Abort the run").click()
        expect(page.get_by_role("status")).to_contain_text("1 fault undone", timeout=90_000)
    assert served.state_at_its_end("benchmark", dag_run) == "failed"
    status = store.finished(run_id).status()
    assert (status.state, "aborted" in status.error) == ("failed", True)
    assert members(token) == []


def requested(dag_run, attempt):
    """The live run that this try of a night has requested, if there is one."""
    for run_id in store.all_live():
        request = Request.of(store.live(run_id).known_status().dag_run)
        if request and (request.dag_run, request.attempt) == (dag_run, attempt):
            return run_id
    return None


def test_the_run_of_a_night_that_is_cleared_or_marked_as_failed_is_aborted(served, night, tmp_path):
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(yaml.safe_dump(MATRIX | {"workloads": {"words": {}}}, sort_keys=False))
    dag_run = served.trigger("nightly", {"matrix": str(matrix)})
    path = f"/api/v2/dags/nightly/dagRuns/{dag_run}"
    first = wait("a run", lambda: requested(dag_run, 1))
    served.call(f"{path}/clear", {"dry_run": False})
    second = wait("the run after the clearing", lambda: requested(dag_run, 2))
    assert first not in store.all_live(), "it would be measured beside the second one"
    served.call(path, {"state": "failed"}, "PATCH")
    wait("the end of the second run", lambda: second not in store.all_live())
    assert [store.finished(run_id).status().error for run_id in (first, second)] == ["aborted by hand"] * 2
    assert served.state_at_its_end("nightly", dag_run) == "failed"


def test_the_run_of_a_dag_run_that_a_person_cleared_goes_on(served, night, tmp_path):
    """Though the task that requested the DAG run is over, another one begins a run, and that one is ended by hand."""
    cleared = night.run.status().dag_run
    served.call(f"/api/v2/dags/benchmark/dagRuns/{cleared}/clear", {"dry_run": False})
    wanted = wait("the run of the person", lambda: requested(night.dag_run, 1))
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(yaml.safe_dump(MATRIX | {"workloads": {"words": {}}}, sort_keys=False))
    dag_run = served.trigger("nightly", {"matrix": str(matrix)})
    other = wait("a run of the next night", lambda: requested(dag_run, 1))
    served.call(f"/api/v2/dags/nightly/dagRuns/{dag_run}", {"state": "failed"}, "PATCH")
    wait("the end of that run", lambda: other not in store.all_live())
    assert not LiveRun(wanted).aborted
    live.end(wanted)
    assert served.state_at_its_end("benchmark", cleared) == "failed"
    assert store.finished(wanted).status().attempt == 2


def test_no_log_and_no_table_holds_a_secret(night):
    """Of Airflow's own files only those that are made to keep secrets have any, and only their owner reads them."""
    folder = environment.airflow_home()
    keepers = [folder / "secrets.json", environment.password_file()]
    kept = [value for path in keepers for value in json.loads(path.read_text()).values()]
    token = re.compile(rb"eyJ[\w-]{16,}\.eyJ[\w-]{16,}\.[\w-]{16,}|-----BEGIN [A-Z ]*PRIVATE KEY")
    told = []
    for path in (path for path in store.home().rglob("*") if path.is_file() and path not in keepers):
        content = path.read_bytes()
        if any(secret.encode() in content for secret in [SECRET, *kept]) or token.search(content):
            told.append(path.relative_to(store.home()).as_posix())
    assert told == []


def test_nothing_of_the_run_is_left(night):
    assert members(store.read_json(night.run.raw / "handle.json")["token"]) == []
