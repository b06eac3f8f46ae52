"""Whose traces may be removed, by real processes and real locks. Removing itself is an integration test."""

import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys

import pytest

from aftershock import clean, lease
from aftershock.lease import Lease
from experiments.errors import BadInput
from infra import leftovers
from infra.cluster import HANDLE_FILE
from infra.leftovers import Traces
from infra.processes import MARK, ROOT, members
from infra.services import REPOSITORY
from tests.unit.marked_processes import wait_for

HOLD = """
import subprocess, sys, time
from pathlib import Path
from aftershock.lease import lease
with lease(Path(sys.argv[1])) as held:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=[held])
    print(child.pid, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def run(tmp_path):
    """A live directory with a cluster's handle, and its token."""
    token, root = f"s250-{secrets.token_hex(8)}", tmp_path / "live" / "run-1" / "cluster"
    root.mkdir(parents=True)
    (root / HANDLE_FILE).write_text(json.dumps({"token": token}))
    yield token, root
    for pid in members(token):
        os.kill(pid, signal.SIGKILL)


def traces(run, **changes):
    token, root = run
    none = {"namespaces": 0, "mounts": 0, "containers": 0, "hidden": False}
    return Traces(**{"token": token, "root": str(root), "processes": 1, **none, **changes})


def test_a_cluster_is_found_by_its_processes(run):
    token, root = run
    for variables in ({ROOT: str(root)}, {}):
        subprocess.Popen(["sleep", "60"], env={MARK: f"{token}/worker-1/nap", **variables})
    wait_for(lambda: len(members(token)) == 2)
    (found,) = [traces for traces in leftovers.find() if traces.token == token]
    assert found == Traces(token, str(root), 2, 0, 0, 0, hidden=False)
    assert not found.orphaned


def test_marks_that_no_driver_made_are_not_looked_at(token):
    subprocess.Popen(["sleep", "60"], env={MARK: f"{token}/worker-1/nap", ROOT: "/nowhere"})
    wait_for(lambda: bool(members(token)))
    assert token not in {traces.token for traces in leftovers.find()}


def test_a_run_without_lease_is_left_alone_unless_it_is_named(run):
    assert "begun elsewhere" in clean.why_kept(traces(run), None)
    assert clean.why_kept(traces(run), run[1].parent) == ""


def test_a_run_is_alive_while_anyone_holds_its_lease_and_dead_at_once_when_nobody_does(run):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run[1].parent)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    child = int(holder.stdout.readline())
    assert clean.why_kept(traces(run), None) == "its run is alive"
    holder.kill()
    holder.wait(5)
    assert lease.state_of(run[1].parent) is Lease.HELD, "the child goes on, as Airflow does when its command is killed"
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: lease.state_of(run[1].parent) is Lease.FREE)
    assert clean.why_kept(traces(run), None) == ""


def test_a_lease_goes_with_its_run(run):
    live_directory = run[1].parent
    with lease.lease(live_directory):
        assert lease.state_of(live_directory) is Lease.HELD
        with lease.lease_path(live_directory).open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert lease.state_of(live_directory) is Lease.NONE


def test_a_cluster_whose_handle_is_gone_or_anothers_is_dead(run):
    (run[1] / HANDLE_FILE).write_text(json.dumps({"token": "s250-another"}))
    assert clean.why_kept(traces(run), None) == ""
    (run[1] / HANDLE_FILE).unlink()
    assert clean.why_kept(traces(run), None) == ""


def test_what_nothing_tells_the_owner_of_is_left_alone(run):
    assert clean.why_kept(traces(run, root=""), None) == "nothing tells whose it is"
    kept = clean.why_kept(traces(run, root="", namespaces=2, processes=0), None)
    assert kept == ("only root can remove namespaces and mounts" if os.geteuid() else ""), "its creation was cut off"


def test_only_live_runs_that_nobody_works_on_can_be_named(run, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_HOME", str(run[1].parents[2]))
    with pytest.raises(BadInput, match="run_id: 'run-2' is not usable; allowed: a live run: run-1"):
        clean.clean("run-2")
    with (
        lease.lease(run[1].parent),
        pytest.raises(BadInput, match="run_id: 'run-1' is not usable; allowed: a run that nobody works on"),
    ):
        clean.clean("run-1")
