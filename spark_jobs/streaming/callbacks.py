"""Who may call back: the JVM tells listeners in Python what happened, over a port that any local user can reach.

py4j asks nobody there for a token, and calls whatever method it is told to. But a connection within one machine has a
user at its other end, whom the kernel knows.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LOCAL, REMOTE, STATE, USER = 1, 2, 3, 7  # columns
ESTABLISHED = "01"
MAPPED = "0000000000000000FFFF0000"  # before an IPv4 address, of a program that uses IPv6 for both


def guard_callbacks(spark: SparkSession) -> None:
    """Have only connections of this user heard; to be called before the first listener or `foreachBatch`."""
    spark.sparkContext._gateway.callback_server_parameters.ssl_context = OwnUserOnly()


class OwnUserOnly:
    """Stands where py4j takes a TLS context: each new connection is passed through it before it is heard."""

    def wrap_socket(self, connection: socket.socket, server_side: bool) -> socket.socket:
        """The connection; one of another user is at its end, for an error would end py4j's server."""
        if user_of_peer(connection) != os.getuid():
            with suppress(OSError):  # it has ended
                connection.shutdown(socket.SHUT_RDWR)
        return connection


def user_of_peer(connection: socket.socket) -> int | None:
    """The id of the user at the other end of a connection over IPv4 within this machine.

    None if nobody is there any more: a socket that was closed counts as root's, so only one that is open tells.
    """
    try:
        ours, theirs = _written(connection.getsockname()), _written(connection.getpeername())
    except OSError:  # it was reset
        return None
    for table in TABLES:
        for row in map(str.split, Path(table).read_text().splitlines()[1:]):
            ends = row[LOCAL].removeprefix(MAPPED), row[REMOTE].removeprefix(MAPPED)
            if ends == (theirs, ours) and row[STATE] == ESTABLISHED:
                return int(row[USER])
    return None


def _written(address: tuple[str, int]) -> str:
    """An address and port as the kernel's tables have them."""
    host, port = address
    return "".join(f"{part:02X}" for part in reversed(socket.inet_aton(host))) + f":{port:04X}"
