"""Slots in processes of their own: some are killed at once, others come one by one, and so do the queries."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.hashtags import HashtagsSpec, HashtagTopology
from experiments.waiting import poll_until
from journal.events.testbed import TESTBED, CheckpointStored, PartitionReached, Recovering, WorkerJoined, WorkerLost
from journal.reader import events
from journal.writer import Journal
from testbed.operators import Delivery
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from testbed.runtime.secret import RunSecret
from testbed.runtime.server import Server
from testbed.runtime.sinks import published
from tests.unit.testbed.hashtag_queries import exact
from workloads.hashtags import tweets
from workloads.schedule import Schedule

EVENTS, RATE, PATIENCE_S = 3000, 250.0, 120.0
SLOT = """
import json, sys
from testbed.runtime.job import Job
from testbed.runtime.secret import RunSecret
from testbed.runtime.slot import Slot
job, host, port, token, key, task = json.load(sys.stdin)
Slot(Job.from_json(job), (host, port), RunSecret(bytes.fromhex(token), bytes.fromhex(key)), task, 0).run()
"""


class Run:
    """A job with its server in a thread, and slots that are started and killed one by one."""

    def __init__(self, folder: Path, spec: HashtagsSpec, slots: int) -> None:
        self.start_ns = time.time_ns() // 10**9 * 10**9
        self.job = Job(
            run_id="queries",
            workload=spec,
            protocol="batch-aligned",
            slots=slots,
            parallelism=1,
            input=JobInput(InputKind.GENERATED, EVENTS, self.start_ns, RATE),
            output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, str(folder / "output")),
            store=str(folder / "store"),
            recovery="query-centric",
            checkpoint_interval_s=1.0,
        )
        self._secret, self._path = RunSecret.draw(), folder / "query.jsonl"
        self._server = Server(self.job, self._secret.token, "127.0.0.1", Journal(self._path))
        self._slots: list[subprocess.Popen] = []
        self._stopping = threading.Event()
        self.is_complete = False
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        self.is_complete = self._server.serve(self._stopping.is_set)

    def told(self, kind: type) -> list:
        return [event for event in events(self._path, TESTBED) if isinstance(event, kind)]

    def come(self) -> None:
        """Another slot comes; returns when all that goes back then is as far as it was."""
        before, known = len(self.told(WorkerJoined)), len(self.told(Recovering))
        secret = self._secret.token.hex(), self._secret.store_key.hex()
        given = json.dumps([self.job.to_json(), *self._server.address, *secret, len(self._slots)])
        slot = subprocess.Popen([sys.executable, "-c", SLOT], stdin=subprocess.PIPE, text=True)
        self._slots.append(slot)
        slot.stdin.write(given)
        slot.stdin.close()
        self.wait(lambda: len(self.told(WorkerJoined)) > before)
        restored = {name for each in self.told(Recovering)[known:] if each.epoch > 1 for name in each.restored}
        self.wait(lambda: restored <= {each.partition for each in self.told(PartitionReached)})

    def kill(self, number: int) -> None:
        self._slots[number].send_signal(signal.SIGKILL)
        self._slots[number].wait()

    def wait(self, condition: Callable[[], bool]) -> None:
        assert poll_until(condition, interval_s=0.05, limit_s=PATIENCE_S)

    def wait_for_the_end(self) -> None:
        self._thread.join(PATIENCE_S)

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._server.close()
        for each in self._slots:
            each.kill()
            each.wait()


@pytest.fixture
def started(tmp_path: Path):
    spec = HashtagsSpec(topology=HashtagTopology.TWO_WINDOWS, window_s=3.0, hashtags=50, priorities=(1, 9))
    run = Run(tmp_path, spec, 5)
    for _ in range(5):
        run.come()
    yield run
    run.close()


def test_killed_slots_come_back_one_by_one_and_so_do_queries(started: Run) -> None:
    started.wait(lambda: {each.partition for each in started.told(CheckpointStored)} >= {"o0.0", "q1.0"})
    for number in range(4):
        started.kill(number)
    started.wait(lambda: len(started.told(WorkerLost)) == 4)
    for _ in range(4):
        started.come()
    started.wait_for_the_end()
    assert started.is_complete
    spec, schedule = started.job.workload, Schedule(started.start_ns, RATE)
    wanted = exact(spec, {"tweets": [[tweets(spec, schedule, 0, EVENTS)]]})
    tables = published(Path(started.job.output.folder))
    assert Counter(tuple(row.values()) for table in tables for row in table.to_pylist()) == wanted
    # The fifth slot has kept the sink of the favoured query. So this one is complete with the source and one more.
    first = next(each.at_ns for each in started.told(PartitionReached) if each.partition == "o1.0" and each.epoch > 1)
    assert first < started.told(WorkerJoined)[-1].at_ns
