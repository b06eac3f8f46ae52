"""The runtime without Spark: slots as processes that are killed and paused amid the run, each protocol, no JVM."""

from __future__ import annotations

import math
import multiprocessing
import os
import secrets
import signal
import time
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.compute as pc
import pytest

from experiments.workloads import NexmarkQuery, NexmarkSpec
from infra.journal import Journal, read_journal
from spark_jobs.dataflow.operators import Delivery
from spark_jobs.dataflow.partition import Limits
from spark_jobs.dataflow.runtime.job import InputKind, InputSpec, Job, OutputKind, OutputSpec
from spark_jobs.dataflow.runtime.server import Server
from spark_jobs.dataflow.runtime.sinks import published
from spark_jobs.dataflow.runtime.slot import Slot
from spark_jobs.dataflow.runtime.wire import Address
from tests.integration.spark_jobs.exact_results import emitted, exact

RATE, WINDOW_S, HERE = 10_000.0, 1.0, "127.0.0.1"
WINDOW_NS = round(WINDOW_S * 1e9)
KILLS, SILENCE_LIMIT_S, LIMIT_S, WHOLE_WINDOWS = 3, 1.5, 120.0, 2
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
        self._job, self._journal, self._random = job, journal, Random(seed)
        self._blows = [signal.SIGKILL] * KILLS + [signal.SIGSTOP]
        self._told, self._deadline_s = 0, time.monotonic() + LIMIT_S

    def strike(self) -> bool:
        """A blow whenever the one before has been dealt with and there are new checkpoints; whether all is over."""
        entries = read_journal(self._journal)
        self._revive(any(entry["event"] == "worker-lost" and "silent" in entry["why"] for entry in entries))
        if self._is_well(entries[self._told :]):
            if not self._blows:
                return min(last_windows(self._job)) > self._job.input.start_ns + WHOLE_WINDOWS * WINDOW_NS
            self._told = len(entries)
            os.kill(self._random.choice(self._processes).pid, self._blows.pop(0))
        assert time.monotonic() < self._deadline_s, "not recovered in time"
        return False

    def _is_well(self, since: list[dict[str, Any]]) -> bool:
        """Whether the last blow was noticed, and all have gone on since for a while. Both slots are joined then."""
        turns = [entry["event"] for entry in since if entry["event"] in ("ready", "worker-lost")]
        stored = [entry for entry in since if entry["event"] == "checkpoint" and turns[-1:] == ["ready"]]
        noticed = "worker-lost" in turns or not self._told
        return noticed and len(stored) >= self._random.randrange(8, 16)

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
        workload=NexmarkSpec(query=NexmarkQuery.Q12, window_s=WINDOW_S, slide_s=WINDOW_S),
        protocol=protocol,
        slots=2,
        parallelism=4,
        input=InputSpec(InputKind.GENERATED, None, time.time_ns() + 10**9, RATE),
        output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, str(tmp_path / "output")),
        store=str(tmp_path / "store"),
        checkpoint_interval_s=0.3,
        silence_limit_s=SILENCE_LIMIT_S,
        limits=Limits(records_per_message=64, frames_in_flight=4),
    )
    slots = Slots(job, tmp_path / "journal.jsonl", seed=1)
    try:
        slots.server.serve(slots.strike)
    finally:
        slots.close()
    lost = [entry["why"] for entry in read_journal(tmp_path / "journal.jsonl") if entry["event"] == "worker-lost"]
    assert len(lost) > KILLS
    assert any("silent" in why for why in lost)
    found, windows = emitted(job), last_windows(job)
    assert set(found.values()) == {1}
    wanted = exact(replace(job, input=replace(job.input, events=until(job, max(windows)))))
    assert found.keys() <= wanted.keys()
    assert {row for row in wanted if row[1] < min(windows)} <= found.keys(), "every window before is there whole"


def last_windows(job: Job) -> list[int]:
    """Of each sink partition the last window [ns] that it has published, 0 for none; it may not be whole yet."""
    folders = [Path(job.output.at) / f"out.{number}" for number in range(job.parallelism)]
    return [
        max((pc.max(each["window_start_ns"]).as_py() for each in published(folder)), default=0) for folder in folders
    ]


def until(job: Job, window_start_ns: int) -> int:
    """How many events are due before a window ends, and some more."""
    return math.ceil((window_start_ns + 2 * WINDOW_NS - job.input.start_ns) / 1e9 * RATE)
