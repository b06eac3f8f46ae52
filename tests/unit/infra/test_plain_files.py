"""Locks and files under names that other users may have taken: real FIFOs, links, locks, and another user's files."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.errors import EnvironmentFailure
from infra import locks
from infra.cluster import Handle, Host, Role
from infra.launch import REPOSITORY
from infra.plain_files import LARGEST_BYTES, NotPlain, read_end, read_plain
from infra.services import startup
from infra.ssh import claims
from infra.ssh.claims import Claim
from tests.unit.marked_processes import wait_for

NOBODY = 65534
HOLD = """
import sys, time
from pathlib import Path
from infra.locks import locked
with locked(Path(sys.argv[1]), "the test", stays="stays" in sys.argv):
    print("held", flush=True)
    sys.stdin.readline()
"""
SHORT_S = 0.2


def put(kind: str, path: Path) -> None:
    """Something that is no regular file, under that name."""
    match kind:
        case "a FIFO":
            os.mkfifo(path)
        case "a link":
            path.symlink_to(path.with_name("nowhere"))
        case "a folder":
            path.mkdir()
        case "a socket":
            # The path of a socket may have 107 characters.
            with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(path.parent):
                server.bind(path.name)


STRANGE = ["a FIFO", "a link", "a folder", "a socket"]


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_file_is_neither_read_nor_locked_nor_a_claim(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    put(kind, claims.file())
    for use in (
        lambda: read_plain(claims.file()),
        lambda: locks.locked(claims.file(), "the test").__enter__(),
        claims.owner,
        lambda: claims.take(Claim("m0-0123456789abcdef", "run-1", "/root")),
        lambda: claims.give_up("m0-0123456789abcdef"),
    ):
        with pytest.raises(EnvironmentFailure, match=f"is {kind}, where a regular file belongs; remove it"):
            use()
    assert [path.name for path in tmp_path.iterdir()] == [claims.file().name], "no scratch copy stays"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"token": 1, "run_id": "r", "root": "/", "ports": []}',
                                  '{"token": "m0-1", "run_id": "r", "root": "/", "ports": [], "more": 1}',
                                  '{"token": "m0-1", "run_id": "r", "root": "/", "ports": ["22"]}'])  # fmt: skip
def test_a_damaged_claim_is_one_line(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    claims.file().write_text(text)
    for use in (claims.owner, lambda: claims.take(Claim("m0-1", "run-1", "/root"))):
        with pytest.raises(EnvironmentFailure, match=r"aftershock-machine-\d+ is damaged") as failure:
            use()
        assert "\n" not in str(failure.value)


def test_the_claim_of_another_user_is_never_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid():
        pytest.skip("only root can make another user's file")
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    ours = Claim("m0-0123456789abcdef", "run-1", "/root", (22,))
    assert claims.take(ours) is None
    os.chown(claims.file(), NOBODY, NOBODY)
    assert claims.take(ours) == claims.owner() == Claim("", claims.OF_ANOTHER_USER, "")
    claims.give_up(ours.token)
    assert claims.file().exists()


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    with pytest.raises(NotPlain, match="larger than"):
        read_plain(tmp_path / "large")


def test_of_a_log_that_a_host_wrote_its_end_is_read_and_nothing_that_it_leads_to(tmp_path: Path) -> None:
    logs, secret, uid = tmp_path / "logs", tmp_path / "secret", os.geteuid()
    logs.mkdir()
    secret.write_text("root:x:0:0")
    (logs / "long.log").write_bytes(b"first" + b"x" * LARGEST_BYTES)
    assert read_end(tmp_path, "logs/long.log", uid) == b"x" * LARGEST_BYTES
    (logs / "short.log").write_bytes(b"first, second")
    assert read_end(tmp_path, "logs/short.log", uid, since=5) == b", second"
    assert read_end(tmp_path, "logs/short.log", uid, since=100) == b""
    (logs / "hard.log").hardlink_to(secret)
    with pytest.raises(NotPlain, match="a file with 2 names"):
        read_end(tmp_path, "logs/hard.log", uid)
    with pytest.raises(NotPlain, match=f"a file of user {uid}"):
        read_end(tmp_path, "logs/short.log", uid + 1)
    (tmp_path / "linked").symlink_to(logs)
    with pytest.raises(OSError, match="linked"):
        read_end(tmp_path, "linked/short.log", uid)


@pytest.mark.parametrize("kind", STRANGE)
def test_a_log_that_is_no_file_neither_holds_its_reader_nor_is_read(kind: str, tmp_path: Path) -> None:
    put(kind, tmp_path / "host.log")
    with pytest.raises(NotPlain, match=kind):
        read_end(tmp_path, "host.log", os.geteuid())


@pytest.mark.parametrize("kind", STRANGE)
def test_a_worker_whose_log_is_no_file_has_not_joined(kind: str, tmp_path: Path) -> None:
    hosts = {"worker-1": Host("worker-1", "127.0.9.2", Role.WORKER, 1, 512)}
    handle = Handle("run-1", "local", "s9-0123456789c0ffee", str(tmp_path), hosts)
    log = handle.directory("worker-1") / "logs" / "spark-worker.log"
    log.parent.mkdir(parents=True)
    assert not startup._registered(handle, "worker-1")
    put(kind, log)
    assert not startup._registered(handle, "worker-1")
    log.rmdir() if log.is_dir() else log.unlink()
    log.write_bytes(b"INFO: " + startup.REGISTERED)
    assert startup._registered(handle, "worker-1")
    assert not startup._registered(handle, "worker-1", log.stat().st_size)


def test_a_lock_in_a_folder_that_is_missing_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "lock"
    with pytest.raises(EnvironmentFailure, match=f"{path} cannot be made"), locks.locked(path, "a test"):
        pass


@pytest.fixture
def holder(tmp_path: Path):
    """Holds a lock in another process, of any user, until it is told to let go."""
    started = []

    def hold(path: Path, *words: str, user: int | None = None) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLD, str(path), *words]
        process = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=user
        )
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.wait()


def test_who_waits_for_a_lock_says_for_whom_and_not_for_ever(
    holder, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "TELL_AFTER_S", 0.0)
    path = tmp_path / "lock"
    process = holder(path, "stays")
    told = rf"still held after {SHORT_S} s, for a test, by process {process.pid} of user \w+; wait for it, or end it"
    with pytest.raises(EnvironmentFailure, match=told), locks.locked(path, "a test", limit_s=SHORT_S):
        pass
    (said,) = caplog.messages
    assert said.startswith(f"waiting for a test by process {process.pid} of user ")
    process.kill()
    with locks.locked(path, "a test"):
        pass
    assert path.exists()


def test_a_lock_of_another_user_can_be_waited_for(holder, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can start processes of another user")
    path = tmp_path / "lock"
    path.touch()
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o600)
    with locks.locked(path, "a test"):
        pass
    process = holder(path, "stays")
    with pytest.raises(EnvironmentFailure, match="of user root"), locks.locked(path, "a test", limit_s=SHORT_S):
        pass
    process.kill()


def test_of_those_who_wait_for_a_lock_that_goes_each_gets_it_and_nothing_stays(holder, tmp_path: Path) -> None:
    """A lock that is removed while others wait for it must not be held by two: those who waited look again."""
    path = tmp_path / "lock"
    first = holder(path)
    command = [sys.executable, "-c", HOLD, str(path)]
    waiting = [
        subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]  # fmt: skip
    for process in waiting:
        assert "waiting for the test" in process.stderr.readline()
    before = path.stat().st_ino
    first.communicate("\n", timeout=30)
    wait_for(lambda: (path.exists() and path.stat().st_ino != before) or not path.exists())
    for process in waiting:
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.wait(30) for process in waiting] == [0, 0, 0]
    assert [process.stdout.read() for process in waiting] == ["held\n"] * 3
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_lost_its_name_while_it_was_opened_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptors = [locks._open(path)]
    path.unlink()
    descriptors.append(locks._open(path))
    assert [locks._take(descriptor, path) for descriptor in descriptors] == [False, True]
    for descriptor in descriptors:
        os.close(descriptor)
