"""A run under Airflow's real scheduler, through the deaths of those who watch it, and its page in a browser."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import expect

from aftershock import airflow_environment, steps, trigger_form
from experiments import spec
from results import store
from tests.e2e.browser import logged_in_browser, needs_chromium, screenshot
from tests.e2e.web import free_port, request

PROGRAM = Path(sys.executable).with_name("aftershock")
RUN_ID = "scheduled-run"
OVERRIDES = ["window_s=70", "faults.processes.0.rate=0.012", "seed=9", "load.mode=rate", "load.rate=800"]
LIMIT_S = 900


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of a served Airflow with a home of its own, and the process that serves it."""
    home = tmp_path_factory.mktemp("scheduled")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AIRFLOW_")]:
            patch.delenv(name)
        patch.setenv("AFTERSHOCK_HOME", str(home))
        port = free_port()
        process = subprocess.Popen(
            [PROGRAM, "serve", "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            while line := process.stdout.readline():
                if line.startswith("Airflow: http"):
                    break
            assert line, "Airflow did not come up"
            yield f"http://127.0.0.1:{port}", process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=120)
            for live in store.home().glob("live/*/cluster/handle.json"):  # a run that a failing test has left
                steps.teardown(live.parent.parent.name, "left by its test")


def call(server, path, body=None, token=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(server + path, data, headers), timeout=60) as answer:
        return json.load(answer)


def wait(what, met):
    deadline = time.monotonic() + LIMIT_S
    while not (found := met()):
        assert time.monotonic() < deadline, f"still waiting for {what}"
        time.sleep(0.5)
    return found


def kill(process, *words):
    """SIGKILL the processes below this one whose command line has all of the words."""
    alive = [c for c in process.children(recursive=True) if c.status() != psutil.STATUS_ZOMBIE]
    below = [child for child in alive if all(word in " ".join(child.cmdline()) for word in words)]
    assert below, f"no {words} to kill"
    for child in below:
        child.kill()


def events(run_id):
    path = store.live(run_id).raw / "query.jsonl"
    return [json.loads(line)["event"] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def finished_run(served):
    """One run, in whose window triggerer, scheduler and query driver are killed."""
    server, process = served
    credentials = {"username": airflow_environment.ADMIN, "password": airflow_environment.admin_password()}
    token = call(server, "/auth/token", credentials)["access_token"]
    conf = trigger_form.flatten(spec.load("wordcount", OVERRIDES)) | {"run_id": RUN_ID}
    wait("the DAG to be known", lambda: request(server, "/api/v2/dags/benchmark", token)[0] == 200)
    request_body = {"logical_date": None, "conf": conf}
    dag_run = call(server, "/api/v2/dags/benchmark/dagRuns", request_body, token)["dag_run_id"]
    plan = store.live(RUN_ID).raw / "plan.json"
    wait("the window to open", lambda: plan.exists() and time.time_ns() > store.read_json(plan)["window_start_ns"])
    parent = psutil.Process(process.pid)
    kill(parent, "airflow", "triggerer")
    kill(parent, "airflow", "scheduler")
    before = events(RUN_ID).count("driver-started")
    handle = store.read_json(store.live_directory(RUN_ID) / "cluster" / "handle.json")
    _kill_query_driver(handle["token"])
    wait("the query driver to come back", lambda: events(RUN_ID).count("driver-started") > before)
    path = f"/api/v2/dags/benchmark/dagRuns/{dag_run}"
    state = wait("the DAG run", lambda: (s := call(server, path, token=token)["state"]) in ("success", "failed") and s)
    return state, store.finished(RUN_ID)


def _kill_query_driver(token):
    from infra.processes import members

    for pid in members(f"{token}/gateway/query"):
        command = psutil.Process(pid).cmdline()
        if any(word.endswith("streaming/driver.py") for word in command) and "infra.supervisor" not in command:
            os.kill(pid, signal.SIGKILL)


def test_the_run_goes_on_without_those_who_watched_it(finished_run):
    state, run = finished_run
    assert run.status()["state"] == "done"
    verdicts = dict(run.table("verdicts")[["check", "verdict"]].itertuples(index=False))
    assert state == ("failed" if "fail" in verdicts.values() else "success")
    for check in ("ledger.adds_up", "faults.proved", "quality.nothing_lost", "quality.nothing_wrong"):
        assert verdicts[check] == "pass", verdicts
    assert len(run.table("faults")) == 2


def test_the_death_of_the_driver_is_a_recovery_of_its_own(finished_run):
    _, run = finished_run
    ledger = run.table("ledger")
    without_a_fault = ledger[(ledger["class"] == "restart") & ledger["fault"].isna()]
    assert without_a_fault["seconds"].sum() > 1


@needs_chromium
def test_the_run_is_seen_in_airflow(served, finished_run):
    server, _ = served
    with logged_in_browser(server) as context:
        page = context.new_page()
        page.goto(f"{server}/plugin/aftershock/aftershock/runs/{RUN_ID}")
        frame = page.frame_locator("iframe[title=Aftershock]")
        expect(frame.get_by_role("heading", level=1)).to_contain_text(RUN_ID, timeout=90_000)
        screenshot(page, "scheduled-run")


def test_nothing_of_the_run_is_left(finished_run):
    _, run = finished_run
    token = store.read_json(run.raw / "handle.json")["token"]
    from infra.processes import members

    assert members(token) == []
