"""What the scripts of the pages fetch: in time, or with a line that says why not."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from plugins.files import STATIC_FOLDER
from tests.unit.plugins.test_charts import NODE

PATIENCE_S = 60
LIMIT_MS = 4000
HEAD = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"


@contextmanager
def answering(sent: bytes) -> Iterator[str]:
    """The address of a server that answers each request with these bytes, and then keeps the connection."""
    kept: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection = listening.accept()[0]
                kept.append(connection)
                connection.recv(4096)
                connection.sendall(sent)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE_S)
            for connection in kept:
                connection.close()


def said_of(*addresses: str) -> list[str]:
    command = [NODE, str(Path(__file__).parent / "fetch_json.mjs"), str(STATIC_FOLDER), str(LIMIT_MS), *addresses]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    said: list[str] = json.loads(done.stdout)
    return said


def test_what_is_fetched_comes_in_time_or_a_line_says_why_not():
    with answering(b"") as gone:
        pass
    with (
        answering(HEAD % (b"200 OK", 2) + b"{}") as good,
        answering(b"") as silent,
        answering(HEAD % (b"200 OK", 99) + b"{") as stuck,
        answering(HEAD % (b"200 OK", 1) + b"<") as wrong,
        answering(HEAD % (b"404 Not Found", 2) + b"{}") as missing,
    ):
        found = said_of(good, silent, stuck, missing, gone, wrong)
    late = "The server did not answer in 4 s."
    assert found[:-1] == ["{}", late, late, "The data cannot be had (404).", "The server cannot be reached."]
    assert found[-1].startswith("The data cannot be read (")


def test_a_poll_of_a_live_run_has_a_time_limit():
    """Without one, the page of a server that hangs would show old figures, and not say so."""
    assert "fetchJson(live.dataset.source, LIMIT_MS)" in (STATIC_FOLDER / "live.js").read_text(encoding="utf-8")
