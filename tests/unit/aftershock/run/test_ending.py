"""The end of runs that something went wrong with: real links, FIFOs, processes, and teardowns at the same time."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from aftershock.cli import program
from aftershock.run import ending, gathering, lease, step_notes, steps
from experiments.errors import EnvironmentFailure
from infra import leftovers, tokens
from infra.cluster import HANDLE_FILE, Handle, Host, Role
from infra.launch import REPOSITORY
from infra.processes import MARK, ROOT, members
from infra.services import startup
from results.runs import store
from tests.unit.marked_processes import wait_for

NOBODY = 65534
TEAR_DOWN = "import sys; from aftershock.run import steps; print(steps.teardown(sys.argv[1], 'ended'))"


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine of this test alone: it sees no other run, and waits for no other that starts a cluster."""
    monkeypatch.setattr(startup, "PROVISION_LOCK", tmp_path / "lock")
    find, roots = leftovers.find, str(tmp_path)
    monkeypatch.setattr(leftovers, "find", lambda: [traces for traces in find() if traces.root.startswith(roots)])


def begin(run_id="run-1"):
    steps.begin({"name": "mine", "window_s": 30}, run_id)
    return store.live_directory(run_id)


def provision(run_id="run-1"):
    """A cluster of the run, with one service; returns its handle and its process."""
    root = store.live_directory(run_id) / "cluster"
    (root / "hosts" / "worker-1" / "logs").mkdir(parents=True)
    hosts = {"gateway": Host("gateway", "127.0.252.1", Role.GATEWAY, 1, 512)}
    handle = Handle(run_id, "local", tokens.new("local", 252), str(root), hosts)
    handle.save()
    mark = {MARK: f"{handle.token}/worker-1/nap", ROOT: str(root)}
    return handle, subprocess.Popen(["sleep", "600"], env=mark)


def test_only_its_user_may_enter_a_live_run(home):
    assert stat.S_IMODE(begin().stat().st_mode) == 0o700


def test_a_full_disk_keeps_no_teardown_from_its_cluster(monkeypatch):
    begin()
    _, process = provision()

    def refused(path, document):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(store, "write_json", refused)
    with pytest.raises(OSError, match=r"No space left on device: .*status\.json"):
        steps.teardown("run-1", "failed")
    assert process.wait(60) == -signal.SIGKILL


def test_of_the_hosts_folders_only_regular_files_of_the_run_are_kept(tmp_path):
    live = begin()
    secret, hosts = tmp_path / "secret.log", live / "cluster" / "hosts"
    secret.write_text("root:x:0:0")
    own, linked = hosts / "worker-1" / "logs", hosts / "worker-2"
    own.mkdir(parents=True), linked.mkdir(), (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret.log").write_text("root:x:0:0")
    (own / "broker.log").write_text("kept")
    (own / "notes.txt").write_text("no log")
    (own / "link.log").symlink_to(secret)
    (own / "hard.log").hardlink_to(secret)
    os.mkfifo(own / "fifo.log")
    (own / "folder.log").mkdir()
    (linked / "logs").symlink_to(tmp_path / "other")
    (hosts / "worker-3").symlink_to(tmp_path)
    told = ["fifo.log: fifo.log is a FIFO", "folder.log: folder.log is a folder", "link.log: link.log is a link"]
    if not os.geteuid():
        (own / "theirs.log").write_text("another user's")
        os.chown(own / "theirs.log", NOBODY, NOBODY)
        told.append("theirs.log: hosts/worker-1/logs/theirs.log is a file of user 65534")
    assert steps.teardown("run-1", "failed") == "failed"
    logs = store.finished("run-1").raw / "logs"
    assert sorted(path.relative_to(logs).as_posix() for path in logs.rglob("*") if path.is_file()) == [
        "left-out.txt",
        "worker-1/broker.log",
    ]
    assert (logs / "worker-1" / "broker.log").read_text() == "kept"
    lines = (logs / "left-out.txt").read_text().splitlines()
    assert [line for line in lines if any(part in line for part in told)] == [
        line for line in lines if "worker-1" in line and "hard.log" not in line
    ]
    assert sum("hard.log is a file with 2 names" in line for line in lines) == 1
    assert any(line.startswith("hosts/worker-2/logs: ") for line in lines)
    assert any(line.startswith("hosts/worker-3/logs: ") for line in lines)
    assert secret.read_text() == "root:x:0:0"


def test_what_a_host_planted_in_the_raw_logs_is_gone_from_the_run(tmp_path):
    live = begin()
    (live / "cluster").mkdir()
    events = live / "result" / "raw" / "spark-events"
    events.mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret").write_text("root:x:0:0")
    (events / "app-1").write_text("{}\n")
    (events / "app-2").symlink_to(tmp_path / "other" / "secret")
    (events / "folder").symlink_to(tmp_path / "other")
    os.mkfifo(events / "fifo")
    assert steps.teardown("run-1", "failed") == "failed"
    raw = store.finished("run-1").raw
    assert [path.name for path in (raw / "spark-events").iterdir()] == ["app-1"]
    assert sorted((raw / "logs" / "left-out.txt").read_text().splitlines()) == [
        "raw/spark-events/app-2: it was a link",
        "raw/spark-events/fifo: it was a FIFO",
        "raw/spark-events/folder: it was a link",
    ]
    assert (tmp_path / "other" / "secret").read_text() == "root:x:0:0"


@pytest.mark.parametrize("name", [b"\xff.log", b"\x1b[2J\n.log"])
def test_a_file_with_a_hostile_name_stops_no_teardown_and_writes_to_no_terminal(name, home, caplog):
    live = begin()
    lease.lease_path(live).touch()
    logs = os.fsencode(live / "cluster" / "hosts" / "worker-1" / "logs")
    os.makedirs(logs)
    os.mkfifo(os.path.join(logs, name))
    assert program.main(["clean"]) == 0
    (line,) = (store.finished("run-1").raw / "logs" / "left-out.txt").read_text(encoding="utf-8").splitlines()
    assert " is a FIFO" in line
    assert line.isprintable()
    assert all(message.isprintable() for message in caplog.messages)
    assert not live.exists()


def test_no_host_fills_the_disk_with_its_logs(tmp_path, monkeypatch):
    monkeypatch.setattr(gathering, "LARGEST_BYTES", 1000)
    monkeypatch.setattr(gathering, "MOST_BYTES", 2500)
    logs, kept = tmp_path / "hosts" / "worker-1" / "logs", tmp_path / "kept"
    logs.mkdir(parents=True)
    for name in "abcd":
        with (logs / f"{name}.log").open("wb") as log:
            log.truncate(2**20)
            log.seek(-4, os.SEEK_END)
            log.write(b"last")
    (logs / "small.log").write_text("x")
    problems = gathering.gather_logs(tmp_path, kept)
    sizes = {path.name: path.stat().st_size for path in kept.rglob("*.log")}
    assert sizes == {"a.log": 1000, "b.log": 1000, "c.log": 500}
    assert (kept / "worker-1" / "c.log").read_bytes().endswith(b"last")
    assert [problem.partition(": ")[2] for problem in problems] == [
        *["only its last 1000 bytes are kept"] * 2,
        "only its last 500 bytes are kept",
        *["the logs of the run's hosts have more than 2500 bytes"] * 2,
    ]


def test_what_a_killed_writer_left_is_not_published():
    live = begin()
    scratch = live / "result" / "raw" / ".plan.json.4711.140000"
    scratch.write_text("{")
    (live / "result" / "raw" / ".part-0.parquet.crc").write_text("kept")
    steps.teardown("run-1")
    names = {path.name for path in store.finished("run-1").root.rglob(".*")}
    assert names == {".part-0.parquet.crc"}


@pytest.mark.parametrize("left", [(), ("raw",), ("raw", "experiment.json")])
def test_a_run_that_was_killed_in_begin_is_forgotten(home, left):
    live = begin()
    kept = {live / "result" / name for name in left}
    for path in sorted((live / "result").iterdir()):
        if path not in kept:
            path.rmdir() if path.is_dir() else path.unlink()
    assert steps.teardown("run-1") is None
    assert list((home / "live").iterdir()) == []
    assert store.all_finished() == []


@pytest.mark.parametrize("damage", ["", "{", '{"token": "s"}', "FIFO", "link", "no gateway"])
def test_the_cluster_of_a_damaged_handle_is_found_by_its_place(damage):
    begin()
    process = provision()[1]
    other = begin("run-2"), *provision("run-2")
    path = store.live_directory("run-1") / "cluster" / HANDLE_FILE
    whole = json.loads(path.read_text())
    path.unlink()
    match damage:
        case "FIFO":
            os.mkfifo(path)
        case "link":
            path.symlink_to("nowhere")
        case "no gateway":
            path.write_text(json.dumps(whole | {"hosts": {}}))
        case _:
            path.write_text(damage)
    assert steps.teardown("run-1") == "failed"
    assert process.wait(60) == -signal.SIGKILL
    assert HANDLE_FILE in store.finished("run-1").status().error
    assert other[2].poll() is None
    assert steps.teardown("run-2") == "done"
    assert other[2].wait(60) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("borrowed", "told"),
    [(False, "the removal of the cluster"), (True, "the heals of struck hosts, and the removal of topics")],
)
def test_what_a_teardown_waits_for_is_noted_until_it_fails(monkeypatch, borrowed, told):
    begin()
    _, process = provision()
    monkeypatch.setattr(Handle, "is_borrowed", borrowed)

    class Driver:
        def destroy(self, handle):
            raise EnvironmentFailure(step_notes.read("run-1").awaited.what, "wait")

    monkeypatch.setattr(ending, "driver_for", lambda handle: Driver())
    with pytest.raises(EnvironmentFailure, match=told):
        steps.teardown("run-1")
    assert step_notes.read("run-1").awaited is None
    process.kill()
    assert process.wait(60) == -signal.SIGKILL


def test_a_teardown_of_a_damaged_handle_tells_its_turn_from_the_removal(monkeypatch):
    live, noted = begin(), []
    (live / "cluster").mkdir()
    (live / "cluster" / HANDLE_FILE).write_text("{")

    def note():
        noted.append(step_notes.read("run-1").awaited.what)

    @contextmanager
    def one_at_a_time():
        note()
        yield

    monkeypatch.setattr(startup, "one_at_a_time", one_at_a_time)
    monkeypatch.setattr(leftovers, "at", lambda root, uid: note() or [])
    assert steps.teardown("run-1") == "failed"
    assert noted == [startup.ITS_TURN, ending.REMOVAL]


@pytest.mark.parametrize("name", ["status.json", "failure.json"])
@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_run_with_a_damaged_note_is_published_as_failed(name, text):
    live = begin()
    (live / "result" / name).write_text(text)
    assert steps.teardown("run-1") == "failed"
    status = store.finished("run-1").known_status()
    assert (status.state, status.run_id) == ("failed", "run-1")
    assert name in status.error


@pytest.mark.extended
def test_two_teardowns_at_once_are_one(home):
    begin()
    process = provision()[1]
    command = [sys.executable, "-c", TEAR_DOWN, "run-1"]
    with ending.locked(ending.lock_path("run-1"), "the test", stays=False):
        second = [
            subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        for waiting in second:
            line = next(line for line in waiting.stderr if "waiting for" in line)
            assert line.startswith(f"waiting for the teardown of run run-1 by process {os.getpid()} of user ")
        assert process.poll() is None
    for waiting in second:
        out, err = waiting.communicate(timeout=60)
        assert (waiting.returncode, out) == (0, "failed\n"), err
    assert process.wait(60) == -signal.SIGKILL
    assert list((home / "live").iterdir()) == []


def test_many_teardowns_at_once_agree(home):
    begin()
    provision()
    with ThreadPoolExecutor(8) as pool:
        states = list(pool.map(lambda _: steps.teardown("run-1"), range(8)))
    assert states == ["done"] * 8
    assert list((home / "live").iterdir()) == []


def test_one_bad_run_stops_cleaning_for_no_other(home, capsys):
    good, dead = begin("run-1"), provision("run-1")[1]
    torn, left = begin("run-2"), provision("run-2")[1]
    (torn / "cluster" / HANDLE_FILE).write_text('{"token": ')
    begun = begin("run-3")
    (begun / "result" / "status.json").unlink()
    stuck = begin("run-4")
    (home / "runs").mkdir(exist_ok=True)
    (stuck / "result" / "experiment.json").chmod(0o600)
    ending.lock_path("run-4").mkdir()
    for live in (good, torn, begun, stuck):
        lease.lease_path(live).touch()
    assert program.main(["clean"]) == 3
    said = capsys.readouterr()
    assert [process.wait(60) for process in (dead, left)] == [-signal.SIGKILL] * 2
    for run_id in ("run-1", "run-2"):
        assert f"run {run_id} was published as failed" in said.out
        assert store.finished(run_id).status().state == "failed"
    assert not begun.exists()
    assert "removed live/run-3\n" in said.out
    assert "run-3 was published" not in said.out
    (line,) = said.err.splitlines()
    assert line.startswith(f"aftershock: run run-4: {home}/live/.run-4.teardown is a folder")
    assert line.endswith("`aftershock clean run-4`")


def test_a_good_run_whose_teardown_was_killed_before_it_could_publish_is_done_and_teaches_no_times(monkeypatch, capsys):
    lease.lease_path(begin()).touch()

    def killed(run):
        raise KeyboardInterrupt

    publish = store.publish
    monkeypatch.setattr(store, "publish", killed)
    with pytest.raises(KeyboardInterrupt):
        steps.teardown("run-1")
    monkeypatch.setattr(store, "publish", publish)
    monkeypatch.setattr(ending, "learn_from", None)
    assert program.main(["clean"]) == 0
    assert store.finished("run-1").status().state == "done"
    assert "published as failed" not in capsys.readouterr().out


def test_what_the_system_refuses_of_one_run_stops_no_other(monkeypatch, capsys):
    for run_id in ("run-1", "run-2"):
        lease.lease_path(begin(run_id)).touch()
    teardown = steps.teardown

    def refuse_one(run_id, error):
        if run_id == "run-1":
            raise OSError(errno.EIO, os.strerror(errno.EIO), "/a/disk")
        return teardown(run_id, error)

    monkeypatch.setattr(steps, "teardown", refuse_one)
    assert program.main(["clean"]) == 3
    said = capsys.readouterr()
    assert "aftershock: run run-1: /a/disk: Input/output error; mend that, then `aftershock clean run-1`" in said.err
    assert "run run-2 was published as failed" in said.out


def test_what_cannot_be_removed_of_one_cluster_stops_no_other(monkeypatch, capsys):
    begun = [(begin(run_id), *provision(run_id)) for run_id in ("run-1", "run-2")]
    for live, _, _ in begun:
        lease.lease_path(live).touch()
    remove, stubborn = leftovers.remove, begun[0][1].label

    def refuse_one(label, uid):
        if label == stubborn:
            raise EnvironmentFailure("it survives SIGKILL", "look for it with ps")
        remove(label, uid)

    monkeypatch.setattr(leftovers, "remove", refuse_one)
    assert program.main(["clean"]) == 3
    assert f"aftershock: cluster {stubborn}: it survives SIGKILL" in capsys.readouterr().err
    assert begun[1][2].wait(60) == -signal.SIGKILL
    assert members(begun[0][1].token) == []


def test_the_token_is_in_nothing_that_clean_says(capsys):
    live, (handle, process) = begin(), provision()
    lease.lease_path(live).touch()
    wait_for(lambda: bool(members(handle.token)))
    assert program.main(["clean", "--json"]) == 0
    out = capsys.readouterr().out
    (removed,) = json.loads(out)["removed"]
    assert (removed["label"], removed["roots"]) == (handle.label, [handle.root])
    assert handle.token not in out
    assert process.wait(60) == -signal.SIGKILL


def test_the_notes_of_a_borrowed_cluster_are_kept_if_its_handle_is_damaged():
    """They alone tell which hosts are struck."""
    live = begin()
    notes = live / "cluster" / "external"
    notes.mkdir(parents=True)
    (notes / "struck-worker-1.kill").touch()
    (live / "cluster" / HANDLE_FILE).write_text("{")
    for _ in range(2):
        with pytest.raises(EnvironmentFailure, match="which borrows a cluster, is damaged; copy"):
            steps.teardown("run-1", "failed")
    assert (notes / "struck-worker-1.kill").exists()
    (notes / "struck-worker-1.kill").unlink()
    notes.rmdir()
    assert steps.teardown("run-1", "failed") == "failed"
    assert not live.exists()
