"""Whose traces may be removed, by real processes and real locks, and what is left in S3.

Removing traces is an integration test.
"""

import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from aftershock.cli import program
from aftershock.run import lease
from aftershock.run.lease import Lease
from aftershock.watch import clean
from experiments.errors import BadInput
from experiments.locks import locked_if_free
from infra import leftovers, tokens
from infra.cluster import HANDLE_FILE
from infra.launch import REPOSITORY
from infra.leftovers import Traces
from infra.processes import MARK, ROOT, members
from infra.services import startup
from results.runs import store
from testbed.stores.s3 import S3Store
from tests.object_stores import BUCKET
from tests.unit.marked_processes import wait_for

HOLD = """
import subprocess, sys, time
from pathlib import Path
from aftershock.run.lease import lease
with lease(Path(sys.argv[1])) as held:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=[held])
    print(child.pid, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def run(home):
    """A live directory with a cluster's handle, and its token."""
    token, root = f"s250-{secrets.token_hex(8)}", home / "live" / "run-1" / "cluster"
    root.mkdir(parents=True)
    (root / HANDLE_FILE).write_text(json.dumps({"token": token}))
    yield token, root
    for pid in members(token):
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(pid, signal.SIGKILL)


def traces(run, **changes):
    token, root = run
    none = {"namespaces": 0, "mounts": 0, "containers": 0, "hidden": False}
    own = {"label": tokens.label(token), "uid": os.geteuid(), "roots": (str(root),), "processes": 1}
    return Traces(**{**own, **none, **changes})


def test_a_cluster_is_found_by_its_processes(run):
    token, root = run
    for variables in ({ROOT: str(root)}, {}):
        subprocess.Popen(["sleep", "60"], env={MARK: f"{token}/worker-1/nap", **variables})
    wait_for(lambda: len(members(token)) == 2)
    (found,) = [traces for traces in leftovers.find() if traces.label == tokens.label(token)]
    assert found == traces(run, processes=2)
    assert not found.orphaned


def test_marks_that_no_driver_made_are_not_looked_at(token):
    subprocess.Popen(["sleep", "60"], env={MARK: f"{token}/worker-1/nap", ROOT: "/nowhere"})
    wait_for(lambda: bool(members(token)))
    assert "/nowhere" not in {traces.root for traces in leftovers.find()}


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
    holder.wait(60)
    assert lease.state_of(run[1].parent) is Lease.HELD, "the child goes on, as Airflow does when its command is killed"
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: lease.state_of(run[1].parent) is Lease.FREE)
    assert clean.why_kept(traces(run), None) == ""


def test_who_asks_for_a_lease_is_not_taken_for_its_holder(run):
    """Pages ask every two seconds. An abort that took one of them for the holder would leave the teardown to it."""
    path = lease.lease_path(run[1].parent)
    path.touch()
    with locked_if_free(path, shared=True) as asked:
        assert asked
        assert lease.state_of(run[1].parent) is Lease.FREE
    with lease.lease(run[1].parent), locked_if_free(path, shared=True) as asked:
        assert not asked


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
    assert clean.why_kept(traces(run, roots=()), None) == "nothing tells whose it is"
    kept = clean.why_kept(traces(run, roots=(), namespaces=2, processes=0), None)
    assert kept == ("only root can remove namespaces and mounts" if os.geteuid() else ""), "its creation was cut off"


def test_only_live_runs_that_nobody_works_on_can_be_named(run):
    with pytest.raises(BadInput, match="run_id: 'run-2' is not usable; allowed: a live run: run-1"):
        clean.clean("run-2")
    with (
        lease.lease(run[1].parent),
        pytest.raises(BadInput, match="run_id: 'run-1' is not usable; allowed: a run on which no process works"),
    ):
        clean.clean("run-1")


PLACE = f"s3://{BUCKET}/aftershock"


def write_run(root, engine):
    store.write_json(root / "experiment.json", {"engine": engine})
    store.write_json(root / "status.json", {"run_id": "run-1", "state": "failed"})


def finished(run_id, engine):
    write_run(store.home() / "runs" / run_id, engine)


def in_s3(endpoint, place=PLACE):
    return {"name": "dataflow", "store": place, "store_endpoint": endpoint}


def objects_of(run_id, endpoint, *keys):
    objects = S3Store(f"{PLACE}/{run_id}", endpoint)
    for key in keys:
        objects.put(key, [b"content"])
    return objects


@pytest.mark.extended
def test_what_a_finished_run_left_in_s3_is_deleted_once_it_is_named(no_traces, endpoint, capsys):
    finished("run-1", in_s3(endpoint))
    mine = objects_of("run-1", endpoint, "count.0/state-1-1", "count.0/log-1-1")
    other = objects_of("run-11", endpoint, "count.0/state-1-1")
    assert program.main(["clean"]) == 0
    assert len(mine.keys()) == 2, "this run was not named"
    assert program.main(["clean", "run-1"]) == 0
    assert program.main(["clean", "run-1"]) == 0
    said = ["nothing to remove", f"deleted 2 objects of run run-1 at {PLACE}/run-1", "nothing to remove"]
    assert capsys.readouterr().out.splitlines() == said
    assert (mine.keys(), other.clear()) == ([], 1)


def test_a_dead_run_is_published_and_its_objects_are_deleted(no_traces, endpoint, capsys, home):
    write_run(store.live("run-2").root, in_s3(endpoint))
    (home / "live" / ".run-2.lease").touch()
    objects = objects_of("run-2", endpoint, "count.0/state-1-1")
    assert program.main(["clean", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["published"], told["refused"]) == (["run-2"], [])
    assert told["emptied"] == [{"run_id": "run-2", "place": f"{PLACE}/run-2", "objects": 1}]
    assert objects.keys() == []


def test_a_named_run_is_the_only_one_that_is_cleaned_up(run, home, tmp_path, monkeypatch, capsys):
    """The others would be found dead: a cluster without a handle, a run with a free lease, a lock of no run."""
    token, root = run
    monkeypatch.setattr(startup, "PROVISION_LOCK", tmp_path / "lock")
    others = traces(run, label="s251-0123456789abcdef", roots=(str(tmp_path / "gone" / "cluster"),))
    cut_off = traces(run, label="n252-0123456789abcdef", roots=(), processes=0, namespaces=1)
    monkeypatch.setattr(leftovers, "find", lambda: [traces(run), others, cut_off])
    removed = []
    monkeypatch.setattr(leftovers, "remove", lambda label, uid=None: removed.append(label))
    for run_id in ("run-1", "run-2"):
        write_run(store.live(run_id).root, {})
    for name in (".run-2.lease", ".gone.lease"):
        (home / "live" / name).touch()
    (root / HANDLE_FILE).unlink()
    assert program.main(["clean", "run-1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["published"], told["kept"], told["swept"]) == (["run-1"], [], [])
    assert removed == [tokens.label(token)]
    assert store.all_live() == ["run-2"]
    assert program.main(["clean", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["published"], "live/.gone.lease" in told["swept"]) == (["run-2"], True)
    assert others.label in removed


@pytest.mark.extended
@pytest.mark.parametrize(
    ("missing", "place", "told"),
    [
        ((), "s3://nobody/runs", "NoSuchBucket"),
        (("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), PLACE, "Unable to locate credentials"),
    ],
)
def test_s3_that_refuses_is_one_line_that_names_the_run(no_traces, endpoint, capsys, monkeypatch, missing, place, told):
    for variable in missing:
        monkeypatch.delenv(variable)
    finished("run-1", in_s3(endpoint, place))
    assert program.main(["clean", "run-1"]) == 3
    out, err = capsys.readouterr()
    assert out == "nothing was removed\n"
    (line,) = err.splitlines()
    assert line.startswith(f"aftershock: run run-1: its objects can't be listed at {place}/run-1: ")
    assert told in line
    assert line.endswith("; look at the object store, and at the credentials in this host's environment, then "
                         "`aftershock clean run-1`")  # fmt: skip


def test_a_finished_run_without_s3_left_nothing_there(no_traces, capsys):
    finished("run-1", {})
    assert program.main(["clean", "run-1"]) == 2
    assert "or a finished one with engine.store" in capsys.readouterr().err
