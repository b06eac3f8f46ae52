"""`aftershock benchmark` as a user runs it: the whole DAG on a real cluster and broker, kills included."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import expect

from infra.processes import MARK
from results.tables.schema import LedgerClass
from tests import by_the_clock
from tests.e2e.airflow_server import api_server, home_of_its_own
from tests.e2e.browser import CHROMIUM, PATIENCE_S, logged_in_browser, screenshot

PROGRAM = Path(sys.executable).with_name("aftershock")
SHORT = ["window_s=70", "faults.processes.0.rate=0.012", "seed=9", "engine.checkpoint_interval_s=5"]
PLANNED_KILLS = 2  # of seed 9 in 70 s
LIMIT_S = 1800
# A network of its own, in which somebody listens on the broker's port at all addresses: here others need that port.
OCCUPY = """
import os, socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
occupant = socket.create_server(("0.0.0.0", 9092))
occupant.set_inheritable(True)
os.execv(sys.argv[1], sys.argv[1:])
"""
UNSHARED = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--net", "--map-root-user")
WITHOUT_9092 = (*UNSHARED, sys.executable, "-c", OCCUPY)


@pytest.fixture
def home(tmp_path):
    with home_of_its_own(tmp_path):
        yield tmp_path
    assert processes_of(tmp_path) == []


def processes_of(home):
    """Processes that a run under this home has left: they work below it, or name it."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "environ"]):
        environment = process.info["environ"] or {}
        if MARK in environment and any(str(home) in word for word in process.info["cmdline"] or []):
            found.append(process.info["cmdline"])
    return found


def start(*words, within=()):
    command = [*within, PROGRAM, "benchmark", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def settings(*pairs):
    return [word for pair in pairs for word in ("--set", pair)]


def wait_for(path_pattern, home, process):
    deadline = time.monotonic() + LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        if found := list(home.glob(path_pattern)):
            return found[0]
        time.sleep(0.1)
    pytest.fail(f"{path_pattern} never came: {process.communicate()[1][-3000:]}")


def test_a_run_under_kills_keeps_the_contract(home):
    process = start("--json", *settings(*SHORT))
    out, told = process.communicate(timeout=LIMIT_S)
    assert out, told[-3000:]
    document = json.loads(out)

    verdicts = {verdict["check"]: verdict["verdict"] for verdict in document["verdicts"]}
    assert process.returncode == (0 if set(verdicts.values()) == {"pass"} else 1)
    assert "utilization.predicted" not in verdicts, "2.5 faults are expected, too few to hold a prediction against"
    for check in ("ledger.adds_up", "faults.proved", "quality.nothing_lost", "quality.nothing_wrong"):
        assert verdicts[check] == "pass", document["verdicts"]

    ledger = document["ledger"]
    assert ledger["window"] == pytest.approx(70)
    assert sum(ledger[name] for name in LedgerClass) == pytest.approx(ledger["window"], rel=1e-9)
    assert ledger["useful"] > 0
    assert ledger["restart"] > 0
    measured = document["utilization"]["measured"]
    assert measured == pytest.approx((ledger["useful"] + ledger["idle"]) / ledger["window"])

    assert len(document["faults"]) == PLANNED_KILLS
    assert all(fault["kind"] == "kill" and fault["actual_at"] is not None for fault in document["faults"])
    assert {recovery["fault"] for recovery in document["recoveries"]} <= {0, 1}
    assert all(recovery["detect"] > 0 for recovery in document["recoveries"])
    assert document["quality"]["lost"] == 0
    assert document["quality"]["exact"] > 0

    shown = subprocess.run([PROGRAM, "results", document["run_id"]], capture_output=True, text=True, check=True).stdout
    assert "Where the time went" in shown
    assert "predicted  unknown: 2 faults took effect; at least 3 are needed" in shown
    again = subprocess.run(
        [PROGRAM, "results", document["run_id"], "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(again.stdout) == document
    run = home / "runs" / document["run_id"]
    assert (run / "report.html").is_file()
    assert not list((home / "live").iterdir())


@pytest.mark.extended
def test_airflow_killed_outright_leaves_a_failed_run_with_its_logs(home):
    process = start(*settings(*SHORT))
    handle = wait_for("live/*/cluster/handle.json", home, process)
    (airflow,) = [child for child in psutil.Process(process.pid).children() if child.is_running()]
    os.killpg(airflow.pid, signal.SIGKILL)
    _, told = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 3, told
    (run,) = (home / "runs").iterdir()
    status = json.loads((run / "status.json").read_text())
    assert status["state"] == "failed"
    assert status["error"] in told
    assert (run / "raw").is_dir()
    assert not handle.exists()


@pytest.mark.skipif(
    subprocess.run([*UNSHARED, "true"], stderr=subprocess.DEVNULL).returncode != 0, reason="no network of its own here"
)
def test_a_port_that_is_taken_is_one_clear_line_and_leaves_nothing(home):
    process = start("--json", *settings(*SHORT), within=WITHOUT_9092)
    out, told = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 3
    assert json.loads(out)["state"] == "failed"
    (line,) = [line for line in told.splitlines() if line.startswith("aftershock: ")]
    assert "9092" in line
    assert not list((home / "live").iterdir())


@pytest.mark.extended
@pytest.mark.skipif(
    subprocess.run([*UNSHARED, "true"], stderr=subprocess.DEVNULL).returncode != 0, reason="no network of its own here"
)
def test_two_commands_at_once_in_a_new_home_each_end_as_one_alone_would(home):
    """Both make the home's secrets and its database, each then runs Airflow on a copy of it."""
    both = [start("--json", *settings(*SHORT), within=WITHOUT_9092) for _ in range(2)]
    answers = [process.communicate(timeout=LIMIT_S) for process in both]
    assert [process.returncode for process in both] == [3, 3], answers
    documents = [json.loads(out) for out, _ in answers]
    assert all("9092" in document["error"] for document in documents)
    assert {path.name for path in (home / "runs").iterdir()} == {document["run_id"] for document in documents}
    assert len(list((home / "runs").iterdir())) == 2
    assert [path.name for path in (home / "live").iterdir() if not path.name.endswith(".teardown")] == []
    assert {path.name.partition(".")[0] for path in (home / "airflow" / "command-line").iterdir()} == {"template"}
    assert not any("database is locked" in log.read_text(errors="replace") for log in (home / "logs").iterdir())


@pytest.mark.extended
def test_a_run_of_the_testbed_keeps_the_contract_and_has_the_same_page(home):
    process = start("dataflow-q12", "--json", *settings("window_s=40", "faults.events.0.at=6"))
    out, told = process.communicate(timeout=LIMIT_S)
    assert out, told[-3000:]
    document = json.loads(out)

    verdicts = {verdict["check"]: verdict["verdict"] for verdict in document["verdicts"]}
    assert set(by_the_clock.others(verdicts).values()) == {"pass"}, document["verdicts"]
    assert process.returncode == (0 if set(verdicts.values()) == {"pass"} else 1)
    assert sum(document["ledger"][name] for name in LedgerClass) == pytest.approx(40)
    (recovery,) = document["recoveries"]
    assert recovery["restart"] > 0
    assert (document["quality"]["lost"], document["quality"]["duplicated"]) == (0, 0)
    assert document["quality"]["exact"] > 0

    if CHROMIUM is None:
        pytest.skip("the run is as it must be; its page needs chromium")
    with api_server(home) as server, logged_in_browser(server) as context:
        expect.set_options(timeout=PATIENCE_S * 1000)
        page = context.new_page()
        page.goto(f"{server}/aftershock/runs/{document['run_id']}")
        expect(page.locator("[data-drawn-ms]")).to_have_count(4)
        expect(page.locator("[aria-labelledby=setting] .facts")).to_contain_text("coordinated")
        page.locator("#table-partition_checkpoints summary").click()
        expect(page.locator("#table-partition_checkpoints").get_by_role("cell", name="round").first).to_be_visible()
        screenshot(page, "run-testbed", full_page=True)
