"""Accepts only connections of the same user on the ports that PySpark opens for its own use.

    listeners in Python   the JVM calls them over a port; py4j requires no token here, and calls any named method
    pyspark.daemon        an executor asks it for workers; it forks one for each connection, from any user

A connection within one machine has a user at its other end, whom the kernel knows. Executors run this file as their
`spark.python.daemon.module`. It needs no module of ours, and has a name that no module of a user's own job has. A
program of ours can name modules in the environment (`PRELOADED`) that the daemon imports before it forks: a worker that
takes the place of a lost one then finds them there.
"""

from __future__ import annotations

import errno
import importlib
import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark.daemon

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LOCAL, REMOTE, STATE, USER = 1, 2, 3, 7  # columns
ESTABLISHED = "01"
PRELOADED = "AFTERSHOCK_PRELOADED"
MAPPED = "0000000000000000FFFF0000"  # before an IPv4 address, of a program that uses IPv6 for both


def guard_callbacks(spark: Any) -> None:
    """Guard the port of a session's listeners: to be called before the first listener or `foreachBatch` opens it."""
    spark.sparkContext._gateway.callback_server_parameters.ssl_context = OwnUserOnly()


class OwnUserOnly:
    """Stands where py4j takes a TLS context: each new connection is passed through it before it is heard."""

    def wrap_socket(self, connection: socket.socket, server_side: bool) -> socket.socket:
        """The connection; in place of another user's, one on which nothing comes: an error would end the server."""
        if user_of_peer(connection) == os.getuid():
            return connection
        connection.close()
        ended, other = socket.socketpair()
        other.close()
        return ended


class GuardedSocket(socket.socket):
    """Accepts this user's connections; another's ends, and counts as an interrupted call, after which one goes on."""

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection of this user, and its address; raises `OSError` (EINTR) after one of another."""
        connection, address = super().accept()
        if user_of_peer(connection) == os.getuid():
            return connection, address
        connection.close()
        raise OSError(errno.EINTR, "another user")


def user_of_peer(connection: socket.socket) -> int | None:
    """The id of the user at the other end of a connection over IPv4 within this machine.

    None if the peer is gone: the kernel shows a closed socket as root's, so only an open one shows its owner.
    """
    try:
        ours, theirs = _written(connection.getsockname()), _written(connection.getpeername())
    except OSError:  # it was reset
        return None
    for table in filter(Path.exists, TABLES):  # a kernel without IPv6 has one of them only
        for row in map(str.split, table.read_text().splitlines()[1:]):
            ends = row[LOCAL].removeprefix(MAPPED), row[REMOTE].removeprefix(MAPPED)
            if ends == (theirs, ours) and row[STATE] == ESTABLISHED:
                return int(row[USER])
    return None


def preload(names: str) -> None:
    """Import the modules of these names, which spaces divide."""
    for name in names.split():
        importlib.import_module(name)


def _written(address: tuple[str, int]) -> str:
    """An address and port as the kernel's tables have them."""
    host, port = address
    return "".join(f"{part:02X}" for part in reversed(socket.inet_aton(host))) + f":{port:04X}"


if __name__ == "__main__":
    # In the daemon's own view only: workers, which it forks, may listen to whomever they like.
    guarded = SimpleNamespace(**{**vars(socket), "socket": GuardedSocket})
    pyspark.daemon.socket = guarded  # type: ignore[assignment, attr-defined]  # the module that the daemon imported
    preload(os.environ.get(PRELOADED, ""))
    pyspark.daemon.manager()
