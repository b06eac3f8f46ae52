"""Real processes that carry a host's mark, for tests of what finds, kills and restarts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from infra.processes import MARK

SLEEP = ("sleep", "60")
PATIENCE_S = 60.0


def start(mark: str | None, *command: str) -> subprocess.Popen[bytes]:
    """Start a program (by default one that sleeps) with the mark in its environment, or without any."""
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    return subprocess.Popen(command or SLEEP, env=environment | ({MARK: mark} if mark else {}))


def start_python(mark: str, program: str) -> subprocess.Popen[bytes]:
    return start(mark, sys.executable, "-c", program)


def ignores_sigterm(pid: int) -> bool:
    """Whether a process has said that it ignores SIGTERM: a shell has not yet when it starts."""
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(status.partition("SigIgn:")[2].split()[0], 16) >> (signal.SIGTERM - 1) & 1)


def wait_for(condition: Callable[[], bool], limit_s: float = PATIENCE_S) -> None:
    """Return once the condition holds; a test that waits in vain fails here."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {limit_s:g} s")
        time.sleep(0.01)
