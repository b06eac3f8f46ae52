"""Keeps one program running: restarts it whenever it ends, until it is asked to stop.

Run as a service: `python -m infra.services.supervisor JOURNAL.jsonl PROGRAM [ARGUMENT...]`. The program's processes
carry a mark below the service's, so that a fault can kill them and spare the supervisor. After `HOLD` it does not
start a program that has ended, until `GO_ON`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from experiments.waiting import Deadline, poll_until
from infra.launch import GO_ON, HOLD, NEVER_WORKS, PROGRAM
from infra.processes import MARK
from journal.events.services import ProgramEnded, ProgramStarted
from journal.writer import Journal

PAUSE_S, POLL_S = 0.2, 0.02
GRACE_S = 25.0
SHORT_LIFE_S, MOST_SHORT_LIVES = 30.0, 3  # a program that ends so soon so often cannot work


class Supervisor:
    """Runs one program again and again; a life that a fault ended is not held against it."""

    def __init__(self, command: list[str], journal: Journal) -> None:
        self.command, self.journal = command, journal
        self.stopping = self.holding = self.struck = False

    def listen(self) -> None:
        """Take the signals that it understands."""
        for number, take in ((signal.SIGTERM, self._stop), (HOLD, self._hold), (GO_ON, self._go_on)):
            signal.signal(number, take)

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def _hold(self, *_: object) -> None:
        self.holding = self.struck = True

    def _go_on(self, *_: object) -> None:
        self.holding = False

    def run(self) -> None:
        """Until it is asked to stop, which is passed on, or the program says that it never works, or has ended too soon
        too often."""
        short_lives = 0
        while short_lives < MOST_SHORT_LIVES and self._may_start():
            started = time.monotonic()
            if self._run_once():
                continue
            short_lives = short_lives + 1 if time.monotonic() - started < SHORT_LIFE_S else 0
            time.sleep(PAUSE_S)

    def _may_start(self) -> bool:
        """Wait while it is held; False when it was asked to stop."""
        poll_until(lambda: self.stopping or not self.holding, interval_s=POLL_S)
        self.struck = self.holding  # an earlier strike hit no program
        return not self.stopping

    def _run_once(self) -> bool:
        """Run the program to its end, `GRACE_S` after a request to stop by force; whether a fault ended it."""
        program = subprocess.Popen(self.command, env=os.environ | self._mark())
        self.journal.record(ProgramStarted(program.pid))
        grace: Deadline | None = None
        while program.poll() is None:
            if self.stopping and grace is None:
                grace = Deadline(GRACE_S)
                program.terminate()
            if grace and grace.passed:
                program.kill()
            time.sleep(POLL_S)
        struck, self.struck = self.struck, False
        self.journal.record(ProgramEnded(program.pid, program.returncode))
        self.stopping = self.stopping or program.returncode == NEVER_WORKS
        return struck

    @staticmethod
    def _mark() -> dict[str, str]:
        own = os.environ.get(MARK)
        return {MARK: f"{own}/{PROGRAM}"} if own else {}


def main() -> None:
    """Run a command and start it again when it ends: `supervisor.py JOURNAL.jsonl COMMAND...`."""
    journal, *command = sys.argv[1:]
    supervisor = Supervisor(command, Journal(Path(journal)))
    supervisor.listen()
    supervisor.run()


if __name__ == "__main__":
    main()
