"""A server in the test's own thread."""

from __future__ import annotations

import time
from collections.abc import Callable

from testbed.runtime.server.server import Server

LIMIT_S = 120.0


def serve_until(server: Server, condition: Callable[[], object]) -> None:
    """Serves until the condition holds; a test that waits in vain fails here."""
    deadline_s = time.monotonic() + LIMIT_S
    server.serve(lambda: bool(condition()) or time.monotonic() > deadline_s)
    assert condition()


def serve_turns(server: Server, count: int) -> None:
    """Serves for so many turns of its loop."""
    turns = iter(range(count))
    server.serve(lambda: next(turns, None) is None)
