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


def supervise(command: list[str], journal: Journal) -> None:
    """Run `command` again and again; SIGTERM is passed on, and after `GRACE_S` the program is killed."""
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    while not stopping:
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
        time.sleep(PAUSE_S)


def main() -> None:
    journal, *command = sys.argv[1:]
    supervise(command, Journal(Path(journal)))


if __name__ == "__main__":
    main()
