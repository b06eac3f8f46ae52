"""Locks under names that others may have taken: real FIFOs, links, other holders, and another user's locks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import locks
from experiments.documents.plain_files import RefusedFile
from experiments.errors import EnvironmentFailure
from infra.launch import REPOSITORY
from tests.unit.strange_files import STRANGE, put

NOBODY = 65534
HOLD = """
import select, sys
from pathlib import Path
from experiments.locks import locked
with locked(Path(sys.argv[1]), "the test", stays="stays" in sys.argv):
    print("held", flush=True)
    select.select([sys.stdin], [], [], float(sys.argv[2]))
"""
SHORT_S = 0.2
PATIENCE_S = 30  # a holder then releases the lock, so that a waiter without a limit fails and does not hang


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_file_is_not_locked(kind: str, tmp_path: Path) -> None:
    put(kind, tmp_path / "lock")
    with pytest.raises(EnvironmentFailure, match=f"is {kind}, where a regular file belongs; remove it"):
        locks.locked(tmp_path / "lock", "the test").__enter__()


def test_a_lock_in_a_folder_that_is_missing_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "lock"
    with pytest.raises(EnvironmentFailure, match=f"{path} cannot be made"), locks.locked(path, "a test"):
        pass


@pytest.fixture
def holder():
    """Holds a lock in another process, of any user, until it is told to let go."""
    started = []

    def hold(path: Path, *words: str, user: int | None = None) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLD, str(path), str(PATIENCE_S), *words]
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
    command = [sys.executable, "-c", HOLD, str(path), str(PATIENCE_S)]
    waiting = [
        subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]  # fmt: skip
    for process in waiting:
        assert "waiting for the test" in process.stderr.readline()
    first.communicate("\n", timeout=30)
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


def test_a_lock_that_is_shared_is_held_by_many_and_keeps_out_who_wants_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locks.locked(path, "a test", shared=True), locks.locked(path, "a test", shared=True, limit_s=SHORT_S):
        assert not locks.is_free(path)
        with pytest.raises(EnvironmentFailure, match="still held"), locks.locked(path, "a test", limit_s=SHORT_S):
            pass
    assert locks.is_free(path)
    with (
        locks.locked(path, "a test"),
        pytest.raises(EnvironmentFailure, match="still held"),
        locks.locked(path, "a test", limit_s=SHORT_S, shared=True),
    ):
        pass


def test_who_does_not_wait_holds_a_lock_that_is_free_and_learns_of_one_that_is_not(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with pytest.raises(FileNotFoundError):
        locks.is_free(path)
    with locks.locked_if_free(path, make=True) as first, locks.locked_if_free(path) as second:
        assert (first, second) == (True, False)
    assert locks.is_free(path)


def test_the_lock_of_another_user_is_refused_to_who_asks_for_a_certain_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    assert locks.is_free(path, uid=os.geteuid())
    with pytest.raises(RefusedFile, match="a lock of user"):
        locks.is_free(path, uid=os.geteuid() + 1)


@pytest.mark.parametrize("mode", [locks.OWN, locks.EVERYBODY])
def test_only_a_lock_for_everybody_can_be_opened_by_other_users(mode: int, tmp_path: Path) -> None:
    """Who can open a lock can hold it."""
    previous = os.umask(0o077 if mode == locks.EVERYBODY else 0)
    try:
        with locks.locked(tmp_path / "lock", "a test", mode=mode):
            assert (tmp_path / "lock").stat().st_mode & 0o777 == mode
    finally:
        os.umask(previous)


def test_a_child_that_inherits_a_lock_holds_it_on(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locks.locked(path, "a test") as descriptor:
        child = subprocess.Popen(["sleep", "60"], pass_fds=[descriptor])
    assert not locks.is_free(path)
    child.kill()
    child.wait()
    assert locks.is_free(path)
