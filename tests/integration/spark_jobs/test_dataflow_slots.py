"""The runtime without Spark: slots as processes that are killed and paused amid the run, each protocol, no JVM."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from experiments.workloads import NexmarkQuery, NexmarkSpec
from infra.journal import Journal, read_journal
from spark_jobs.dataflow.operators import Delivery
from spark_jobs.dataflow.partition import Limits
from spark_jobs.dataflow.runtime.job import InputKind, InputSpec, Job, OutputKind, OutputSpec
from spark_jobs.dataflow.runtime.server import Server
from spark_jobs.dataflow.runtime.slot import Slot
from spark_jobs.dataflow.runtime.wire import Address
from tests.integration.spark_jobs.exact_results import emitted, exact

EVENTS, RATE, WINDOW_MS, HERE = 60_000, 10_000.0, 1000, "127.0.0.1"
KILLS, SILENCE_LIMIT_S, LIMIT_S = 3, 1.5, 120.0
PROCESSES = multiprocessing.get_context("forkserver")


def serve_slot(document: dict[str, Any], address: Address, token: str, task: int) -> None:
    os.environ["SPARK_LOCAL_IP"] = HERE
    Slot(Job.from_json(document), address, token, task, 0).run()


class Slots:
    """Two processes; one that was killed is started again, and one that was paused goes on after it was given up."""

    def __init__(self, job: Job, journal: Path, seed: int) -> None:
        token = secrets.token_hex(16)
        self.server = Server(job, token, HERE, Journal(journal))
        self._arguments = (job.to_json(), self.server.address, token)
        self._processes = [self._start(task) for task in range(job.slots)]
        self._journal, self._random = journal, Random(seed)
        self._blows = [signal.SIGKILL] * KILLS + [signal.SIGSTOP]
        self._due, self._deadline_s = self._random.randrange(8, 16), time.monotonic() + LIMIT_S

    def strike(self) -> bool:
        """A blow whenever all goes well and there are new checkpoints; returns whether time is over."""
        entries = read_journal(self._journal)
        self._revive(any(entry["event"] == "worker-lost" and "silent" in entry["why"] for entry in entries))
        turns = [entry["event"] for entry in entries if entry["event"] in ("ready", "worker-lost")]
        stored = sum(entry["event"] == "checkpoint" for entry in entries)
        if self._blows and turns[-1:] == ["ready"] and stored >= self._due:
            self._due = stored + self._random.randrange(8, 16)
            os.kill(self._random.choice(self._processes).pid, self._blows.pop(0))
        return time.monotonic() > self._deadline_s

    def close(self) -> None:
        self.server.close()
        for process in self._processes:
            process.join(5.0)
            process.kill()

    def _revive(self, given_up: bool) -> None:
        for task, process in enumerate(self._processes):
            if not process.is_alive():
                self._processes[task] = self._start(task)
            elif given_up and not self._blows:
                os.kill(process.pid, signal.SIGCONT)

    def _start(self, task: int) -> BaseProcess:
        process = PROCESSES.Process(target=serve_slot, args=(*self._arguments, task))
        process.start()
        return process


@pytest.mark.parametrize("protocol", ["coordinated", "uncoordinated", "communication-induced"])
def test_every_result_is_there_once_whatever_happens_to_slots(tmp_path: Path, protocol: str) -> None:
    job = Job(
        run_id="slots",
        workload=NexmarkSpec(query=NexmarkQuery.Q12, window_s=WINDOW_MS / 1000, slide_s=WINDOW_MS / 1000),
        protocol=protocol,
        slots=2,
        parallelism=4,
        input=InputSpec(InputKind.GENERATED, EVENTS, time.time_ns() + 10**9, RATE),
        output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, str(tmp_path / "output")),
        store=str(tmp_path / "store"),
        checkpoint_interval_s=0.3,
        silence_limit_s=SILENCE_LIMIT_S,
        limits=Limits(records_per_message=64, frames_in_flight=4),
    )
    slots = Slots(job, tmp_path / "journal.jsonl", seed=1)
    try:
        assert slots.server.serve(slots.strike), "not finished in time"
    finally:
        slots.close()
    lost = [entry["why"] for entry in read_journal(tmp_path / "journal.jsonl") if entry["event"] == "worker-lost"]
    assert len(lost) > KILLS
    assert any("silent" in why for why in lost)
    assert emitted(job) == exact(job)
