"""Keeps one program running: starts it again whenever it ends, until asked to stop.

Run as a service: `python -m infra.supervisor JOURNAL.jsonl PROGRAM [ARGUMENT...]`.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from infra.journal import Journal

PAUSE_S = 0.2
GRACE_S = 25.0
SHORT_LIFE_S, MOST_SHORT_LIVES = 30.0, 3  # a program that ends so soon so often cannot work


def supervise(command: list[str], journal: Journal) -> None:
    """Run `command` again and again until SIGTERM, which is passed on, or until it has ended too soon too often."""
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    short_lives = 0
    while not stopping and short_lives < MOST_SHORT_LIVES:
        started = time.monotonic()
        _run_once(command, journal, stopping)
        short_lives = short_lives + 1 if time.monotonic() - started < SHORT_LIFE_S else 0
        time.sleep(PAUSE_S)


def _run_once(command: list[str], journal: Journal, stopping: list[int]) -> None:
    """Run the program to its end; `GRACE_S` after a request to stop it is killed."""
    program = subprocess.Popen(command)
    journal.write("program-started", pid=program.pid)
    asked_at = None
    while program.poll() is None:
        if stopping and asked_at is None:
            asked_at = time.monotonic()
            program.terminate()
        if asked_at and time.monotonic() > asked_at + GRACE_S:
            program.kill()
        time.sleep(0.02)
    journal.write("program-ended", pid=program.pid, status=program.returncode)


def main() -> None:
    journal, *command = sys.argv[1:]
    supervise(command, Journal(Path(journal)))


if __name__ == "__main__":
    main()
