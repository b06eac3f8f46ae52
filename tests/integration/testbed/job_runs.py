"""A job with its server in a thread, and slots in processes of their own that come and are killed one by one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from experiments.waiting import poll_until
from journal.events.testbed import TESTBED, Finished, PartitionReached, Recovering, Report, WorkerJoined
from journal.reader import events
from journal.writer import Journal
from testbed.runtime.connectors.sinks import published
from testbed.runtime.job import Job
from testbed.runtime.network.secret import RunSecret
from testbed.runtime.server.server import Server

PATIENCE_S = 300.0
SLOT = """
import json, sys
from testbed.runtime.job import Job
from testbed.runtime.network.secret import RunSecret
from testbed.runtime.slot.slot import Slot
job, host, port, token, key, task = json.load(sys.stdin)
Slot(Job.from_json(job), (host, port), RunSecret(bytes.fromhex(token), bytes.fromhex(key)), task, 0).run()
"""


class JobRun:
    """A job with its server in a thread, and slots that are started and killed one by one."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job = job
        self._secret, self._path = RunSecret.draw(), folder / "query.jsonl"
        self._server = Server(self.job, self._secret.token, "127.0.0.1", Journal(self._path))
        self._slots: list[subprocess.Popen] = []
        self._stopping, self._draining = threading.Event(), threading.Event()
        self.is_complete = False
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        self.is_complete = self._server.serve(self._is_stopping)

    def _is_stopping(self) -> bool:
        """Whether the server shall stop; passes on the order to drain, in the server's thread."""
        if self._draining.is_set():
            self._draining.clear()
            self._server.drain()
        return self._stopping.is_set()

    def told(self, kind: type) -> list:
        return [event for event in events(self._path, TESTBED) if isinstance(event, kind)]

    def come(self) -> None:
        """Another slot comes; returns when all that goes back then is as far as it was."""
        joined, begun = len(self.told(WorkerJoined)), len(self.told(Recovering))
        secret = self._secret.token.hex(), self._secret.store_key.hex()
        given = json.dumps([self.job.to_json(), *self._server.address, *secret, len(self._slots)])
        slot = subprocess.Popen([sys.executable, "-c", SLOT], stdin=subprocess.PIPE, text=True)
        self._slots.append(slot)
        slot.stdin.write(given)
        slot.stdin.close()
        self.wait(lambda: len(self.told(WorkerJoined)) > joined)
        reports = len(self.told(Report))
        self.wait(lambda: len(self.told(Report)) > reports)
        epoch = self.told(Report)[-1].epoch  # of the recovery that the slot made possible, begun or not, if any
        self.wait(lambda: self._are_back(begun, epoch))

    def _are_back(self, before: int, epoch: int) -> bool:
        """Whether every recovery up to this epoch has begun, and all partitions that were restored since the recoveries
        before are as far as they were. At the first start they had not been anywhere."""
        recoveries = self.told(Recovering)
        lives = {name: each.epoch for each in recoveries[before:] if each.epoch > 1 for name in each.restored}
        reached = {(each.partition, each.epoch) for each in self.told(PartitionReached)}
        return epoch <= max((each.epoch for each in recoveries), default=0) and lives.items() <= reached

    def kill(self, number: int) -> None:
        self._slots[number].send_signal(signal.SIGKILL)
        self._slots[number].wait()

    def wait(self, condition: Callable[[], bool]) -> None:
        assert poll_until(condition, interval_s=0.05, limit_s=PATIENCE_S)

    def drain(self) -> dict[str, int]:
        """Let the sources end; returns where they have, once everything is out."""
        self._draining.set()
        self._thread.join(PATIENCE_S)
        assert self.is_complete
        (finished,) = self.told(Finished)
        return finished.positions

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._server.close()
        for each in self._slots:
            each.kill()
            each.wait()

    def published(self) -> Counter[tuple]:
        """The rows that are out."""
        tables = published(Path(self.job.output.folder))
        return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())
