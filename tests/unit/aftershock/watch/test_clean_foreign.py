"""What `clean` does as root when other users pretend to belong to a run: real processes of another user."""

import json
import os
import secrets
import signal
import subprocess
from pathlib import Path

import pytest

from aftershock.cli import program
from aftershock.run import lease
from aftershock.watch import clean
from infra import leftovers, tokens
from infra.cluster import HANDLE_FILE
from infra.leftovers import Traces
from infra.processes import MARK, ROOT
from infra.services import startup
from tests.unit.marked_processes import wait_for

NOBODY = 65534


@pytest.fixture
def token():
    return f"s250-{secrets.token_hex(8)}"


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts processes of any user with a mark and a root; of all on this machine, `clean` gets to see only those."""
    if os.geteuid():
        pytest.skip("only root can start processes of another user")
    monkeypatch.setattr(startup, "PROVISION_LOCK", tmp_path / "lock")
    started, labels, find = [], set(), leftovers.find

    def start(token, root, user=0, program=("sleep", "600")):
        variables = {MARK: f"{token}/worker-1/nap", ROOT: str(root), "PATH": os.environ["PATH"]}
        process = subprocess.Popen(program, env=variables, user=user, group=user)
        started.append(process)
        labels.add(tokens.label(token))
        wait_for(lambda: b"sleep" in Path(f"/proc/{process.pid}/cmdline").read_bytes())
        return process

    monkeypatch.setattr(leftovers, "find", lambda: [traces for traces in find() if traces.label in labels])
    yield start
    for process in started:
        process.kill()
        process.wait()


def new_root(path, token, user=0):
    """A cluster's root with a handle, of that user."""
    path.mkdir(parents=True)
    (path / HANDLE_FILE).write_text(json.dumps({"token": token}))
    for made in (path, path / HANDLE_FILE):
        os.chown(made, user, user)
    return path


@pytest.fixture
def live(start, tmp_path, token):
    """A process of a live run of root, whose lease is held."""
    root = new_root(tmp_path / "home" / "live" / "run-1" / "cluster", token)
    with lease.lease(root.parent):
        yield start(token, root)


def fake_roots(tmp_path, token):
    """Places that another user may name, and what `clean` may say about each; None: it removes that user's process."""
    other = new_root(tmp_path / "other", f"s251-{secrets.token_hex(8)}", NOBODY)
    roots_own, fifo, link = new_root(tmp_path / "of-root", token), tmp_path / "fifo", tmp_path / "link"
    for folder in (fifo, link):
        folder.mkdir()
    os.mkfifo(fifo / HANDLE_FILE)
    (link / HANDLE_FILE).symlink_to(roots_own / HANDLE_FILE)
    return [
        (tmp_path / "nowhere", None),
        (other, None),
        (roots_own, "belongs to user 0"),
        (fifo, "is a FIFO"),
        (link, "is a link"),
        ("relative/path", "no absolute path"),
        (f"{tmp_path}/other/../nowhere", "no absolute path"),
    ]


@pytest.mark.parametrize("number", range(7))
def test_a_live_run_outlives_another_user_who_names_its_token(start, live, token, tmp_path, capsys, number):
    root, said = fake_roots(tmp_path, token)[number]
    foreign = start(token, root, NOBODY)
    assert program.main(["clean"]) == 0
    assert live.poll() is None
    told = capsys.readouterr().out
    assert ": its run is alive" in told
    if said is None:
        assert foreign.wait(60) == -signal.SIGKILL, "the other user's own leftovers go"
    else:
        assert foreign.poll() is None
        assert said in told


def test_a_live_run_outlives_another_user_who_came_first(start, tmp_path, token):
    foreign = start(token, tmp_path / "nowhere", NOBODY)
    root = new_root(tmp_path / "home" / "live" / "run-1" / "cluster", token)
    with lease.lease(root.parent):
        live = start(token, root)
        assert program.main(["clean"]) == 0
    assert live.poll() is None
    assert foreign.wait(60) == -signal.SIGKILL


def test_a_named_run_is_removed_and_another_users_process_with_its_token_is_not(start, tmp_path, token):
    root = new_root(tmp_path / "home" / "live" / "run-1" / "cluster", token)
    dead, foreign = start(token, root), start(token, root, NOBODY)
    assert program.main(["clean", "run-1"]) == 0
    assert dead.wait(60) == -signal.SIGKILL
    assert foreign.poll() is None


def test_processes_that_do_not_agree_on_a_root_are_left_alone(start, live, tmp_path, token, capsys):
    """As one of a program that took on root's rights from another user's environment."""
    other = start(token, tmp_path / "nowhere")
    assert program.main(["clean"]) == 0
    assert (live.poll(), other.poll()) == (None, None)
    assert leftovers.at(tmp_path / "home" / "live" / "run-1" / "cluster", 0) == []
    assert "its processes name several roots" in capsys.readouterr().out


def test_the_dead_run_of_another_user_is_removed_by_root(start, tmp_path, token):
    root = new_root(tmp_path / "theirs" / "live" / "run-1" / "cluster", token, NOBODY)
    lease.lease_path(root.parent).touch()
    dead = start(token, root, NOBODY)
    assert program.main(["clean"]) == 0
    assert dead.poll() is None, "a lease of root's beside another user's run proves nothing"
    os.chown(lease.lease_path(root.parent), NOBODY, NOBODY)
    assert program.main(["clean"]) == 0
    assert dead.wait(60) == -signal.SIGKILL


def test_who_is_not_root_leaves_the_runs_of_others_alone(start, tmp_path, token, monkeypatch):
    start(token, tmp_path / "nowhere", NOBODY)
    (traces,) = leftovers.find()
    assert clean.why_kept(traces, None) == ""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert clean.why_kept(traces, None) == "it is another user's"


def test_a_root_cannot_write_to_the_terminal(start, tmp_path, token, capsys):
    start(token, f"{tmp_path}/\x1b[2J\nremoved", NOBODY)
    assert program.main(["clean"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("/\\x1b[2J\\nremoved)")


def test_why_a_cluster_is_kept_cannot_write_to_the_terminal(capsys, monkeypatch):
    kept = [(Traces("s0-0123456789abcdef", 0, ("/a",), 1, 0, 0, 0, hidden=False), "its root is /\x1b[2J\nremoved")]
    found = clean.Cleaning([], kept, [], [], ["/home/\x1b[2J\nx"], [])
    monkeypatch.setattr(clean, "clean", lambda _: found)
    assert program.main(["clean"]) == 0
    assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())


def test_a_run_in_a_container_is_left_to_that(start, tmp_path, token, capsys):
    """Its processes are seen from outside, and its files are not: its handle is not gone."""
    root = tmp_path / "home" / "live" / "run-1" / "cluster"
    inside = f"mount -t tmpfs none {tmp_path} && mkdir -p {root} && : > {root}/{HANDLE_FILE} && exec sleep 600"
    process = start(token, root, program=["unshare", "--mount", "sh", "-c", inside])
    wait_for(lambda: [traces.elsewhere for traces in leftovers.find()] == [True])
    assert program.main(["clean"]) == 0
    assert "is in a file system that is not seen from here" in capsys.readouterr().out
    assert process.poll() is None
