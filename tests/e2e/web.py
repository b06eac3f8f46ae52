"""A port for a server of a test, and requests that no client library has tidied up."""

from __future__ import annotations

import http.client
import socket
from urllib.parse import urlsplit

from tests.e2e.browser import PATIENCE_S


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def request(server: str, path: str, token: str | None = None, method: str = "GET") -> tuple[int, str]:
    """Send exactly this path, which no client library would leave as it is; returns status and body."""
    connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=PATIENCE_S)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    text = response.read().decode(errors="replace")
    connection.close()
    return response.status, text
