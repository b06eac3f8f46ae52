"""Drivers in processes of their own, each with its slots, which are killed and started as a whole."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
from pathlib import Path

from experiments.waiting import poll_until
from journal.event import Event
from journal.events.testbed import TESTBED
from journal.reader import events
from testbed.runtime.job import Job
from tests.integration.testbed.job_runs import PATIENCE_S, SLOT

DRIVER = """
import json, sys
from pathlib import Path
from journal.writer import Journal
from testbed.runtime.job import Job
from testbed.runtime.network.secret import RunSecret
from testbed.runtime.server.server import Server
job, journal = json.load(sys.stdin)
job = Job.from_json(job)
secret = RunSecret.with_key_in(job.store_key_file)
server = Server(job, secret.token, "127.0.0.1", Journal(Path(journal)), secret.store_key)
print(json.dumps([*server.address, secret.token.hex(), secret.store_key.hex()]), flush=True)
asked, draining = Path(journal).with_name("drain"), False
def stopping():
    global draining
    if not draining and asked.exists():
        draining = True
        server.drain()
    return False
try:
    server.serve(stopping)
finally:
    server.close()
"""


class DriverProgram:
    """A driver with its slots: what one attempt to run a job is, as it is with Spark."""

    def __init__(self, job: Job, journal: Path, log: Path) -> None:
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", DRIVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._say(self.process, [job.to_json(), str(journal)])
        reach = json.loads(self.process.stdout.readline())
        command = [sys.executable, "-c", SLOT]
        self.slots = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True) for _ in range(job.slots)]
        for task, slot in enumerate(self.slots):
            self._say(slot, [job.to_json(), *reach, task])

    @staticmethod
    def _say(process: subprocess.Popen, what: list) -> None:
        process.stdin.write(json.dumps(what))
        process.stdin.close()

    def signal(self, number: int) -> None:
        """To all of its processes that live."""
        for each in (self.process, *self.slots):
            if each.poll() is None:
                each.send_signal(number)

    def die(self) -> None:
        """As if its hosts had lost their power."""
        self.signal(signal.SIGKILL)
        for each in (self.process, *self.slots):
            each.wait()

    def wait(self) -> int:
        """Until the driver ends by itself; returns its exit code."""
        return self.process.wait(PATIENCE_S)


class DriverRuns:
    """The attempts to run one job, one after the other, and what all of them tell."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job, self.journal, self.log = job, folder / "query.jsonl", folder / "drivers.log"
        self._programs: list[DriverProgram] = []

    def start(self) -> DriverProgram:
        self._programs.append(DriverProgram(self.job, self.journal, self.log))
        return self._programs[-1]

    def told(self, kind: type[Event]) -> list:
        return [event for event in events(self.journal, TESTBED) if isinstance(event, kind)]

    def wait_for(self, kind: type[Event], more_than: int = 0) -> None:
        assert poll_until(lambda: len(self.told(kind)) > more_than, interval_s=0.05, limit_s=PATIENCE_S)

    def drain(self) -> None:
        """Let the sources end."""
        self.journal.with_name("drain").touch()

    def close(self) -> None:
        for each in self._programs:
            each.die()


def key_in(folder: Path) -> str:
    """A file with a store's key."""
    path = folder / "store.key"
    path.write_text(secrets.token_hex(32))
    return str(path)
