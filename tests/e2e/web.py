"""A port for a server of a test, and requests that no client library has tidied up."""

from __future__ import annotations

import http.client
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.browser import PATIENCE_S

UNPRIVILEGED = 1024  # the first port that a server may have whoever it runs for
FOR_CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port that nobody uses, and that the kernel gives to no connection or server before it is taken."""
    first = int(FOR_CONNECTIONS.read_text().split()[0])
    for _ in range(1000):
        port = UNPRIVILEGED + secrets.randbelow(first - UNPRIVILEGED)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    pytest.fail(f"no port from {UNPRIVILEGED} to {first - 1} is free")


def request(server: str, path: str, token: str | None = None, method: str = "GET") -> tuple[int, str]:
    """Send exactly this path, which no client library would leave as it is; returns status and body."""
    connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=PATIENCE_S)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    text = response.read().decode(errors="replace")
    connection.close()
    return response.status, text
