"""Whose connection it is: real connections on loopback, of this user and of another."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_jobs.guard import aftershock_guard
from spark_jobs.guard.aftershock_guard import PRELOADED, GuardedSocket, OwnUserOnly, preload, user_of_peer
from spark_jobs.testbed.driver import SETTINGS

NOBODY = 65534
CALLER = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.sendall(b"do it")
    print("in", flush=True)
    sys.argv[2] == "stays" and sys.stdin.read()
"""


@pytest.fixture
def listening() -> Iterator[GuardedSocket]:
    with GuardedSocket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


@contextmanager
def caller(port: int, user: int, manner: str = "stays") -> Iterator[None]:
    """Somebody who has connected and spoken; and stays, or has gone."""
    command = ["/usr/bin/python3", "-c", CALLER, str(port), manner]
    with subprocess.Popen(command, user=user, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"in\n"
        if manner == "goes":
            process.wait()
        yield
        process.stdin.close()


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


def test_ones_own_user_is_heard(listening: GuardedSocket) -> None:
    with caller(listening.getsockname()[1], os.getuid()):
        connection, _ = listening.accept()
        with connection:
            assert connection.recv(5) == b"do it"
            assert OwnUserOnly().wrap_socket(connection, True) is connection
            assert user_of_peer(connection) == os.getuid()


@needs_root
@pytest.mark.parametrize("manner", ["stays", "goes"])
def test_another_user_is_not_heard_who_has_gone_already_either(listening: GuardedSocket, manner: str) -> None:
    """A socket that was closed counts as root's in the kernel's table."""
    with caller(listening.getsockname()[1], NOBODY, manner), pytest.raises(OSError, match="another user") as refusal:
        listening.accept()
    assert refusal.value.errno == errno.EINTR


@needs_root
def test_a_connection_of_another_user_ends_where_an_error_would_end_the_server(listening: GuardedSocket) -> None:
    with caller(listening.getsockname()[1], NOBODY):
        connection, _ = socket.socket.accept(listening)
        with OwnUserOnly().wrap_socket(connection, True) as heard:
            heard.settimeout(10)  # what was said has no end of a line: one that is heard would be waited for
            assert heard.makefile("rb").readline() == b"", "not even what was said before anybody looked"


def test_a_kernel_without_ipv6_has_one_table_less(
    listening: GuardedSocket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(aftershock_guard, "TABLES", (tmp_path / "tcp6", aftershock_guard.TABLES[0]))
    with caller(listening.getsockname()[1], os.getuid()):
        connection, _ = listening.accept()
        connection.close()


def test_a_connection_that_was_reset_ends_quietly(listening: GuardedSocket) -> None:
    client = socket.create_connection(listening.getsockname())
    connection, _ = socket.socket.accept(listening)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    with OwnUserOnly().wrap_socket(connection, True) as heard:
        assert heard.makefile("rb").readline() == b""


def test_what_is_named_is_imported_before_workers_are_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "named_by_a_program.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    preload("")
    assert "named_by_a_program" not in sys.modules
    preload("json named_by_a_program")
    assert "named_by_a_program" in sys.modules
    with pytest.raises(ModuleNotFoundError, match="nothing_of_ours"):
        preload("nothing_of_ours")


def test_what_the_testbed_names_is_there() -> None:
    preload(str(SETTINGS[f"spark.executorEnv.{PRELOADED}"]))
    assert "testbed.runtime.slot.slot" in sys.modules
