"""The cyclic query in the runtime, without Spark: slots as processes, one killed amid the run; the end is found."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest

from experiments.workloads import ReachabilitySpec
from journal.reader import raw_entries
from journal.writer import Journal
from testbed.operators import Delivery
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from testbed.runtime.network.secret import RunSecret
from testbed.runtime.network.wire import Address
from testbed.runtime.server.server import Server
from testbed.runtime.slot.slot import Slot
from tests.integration.testbed.exact_results import emitted
from workloads.reachability.input import reachable

pytestmark = pytest.mark.extended

RATE, EVENTS, SLOTS, HERE, LIMIT_S = 1000.0, 4000, 2, "127.0.0.1", 300.0
CHECKPOINTS = 15  # before the death
PROCESSES = multiprocessing.get_context("forkserver")


def job_of(protocol: str, root: Path) -> Job:
    delivery = Delivery.PLAIN if protocol == "none" else Delivery.EXACTLY_ONCE
    return Job(
        run_id="cycle",
        workload=ReachabilitySpec(nodes=EVENTS // 2, stream_seed=5),
        protocol=protocol,
        slots=SLOTS,
        parallelism=SLOTS,
        input=JobInput(InputKind.GENERATED, EVENTS, time.time_ns() + 10**9, RATE),
        output=OutputSpec(OutputKind.FILES, delivery, str(root / "output")),
        store=str(root / "store"),
        checkpoint_interval_s=0.3,
    )


def serve_slot(document: dict[str, Any], address: Address, secret: RunSecret, task: int) -> None:
    os.environ["SPARK_LOCAL_IP"] = HERE
    Slot(Job.from_json(document), address, secret, task, 0).run()


def run(job: Job, journal: Path, kill: bool) -> bool:
    """To its end; whether that was found. One slot is killed once there are checkpoints, and started again."""
    secret = RunSecret.draw()
    server, deadline_s = Server(job, secret.token, HERE, Journal(journal)), time.monotonic() + LIMIT_S
    processes = [start(job, server, secret, task) for task in range(job.slots)]
    killed = not kill

    def stopping() -> bool:
        nonlocal killed
        if not killed and sum(entry["event"] == "checkpoint" for entry in raw_entries(journal)) >= CHECKPOINTS:
            processes[0].kill()
            processes[0].join()
            processes[0], killed = start(job, server, secret, 0), True
        return time.monotonic() > deadline_s

    try:
        return server.serve(stopping)
    finally:
        server.close()
        for process in processes:
            process.join(5.0)
            process.kill()


def start(job: Job, server: Server, secret: RunSecret, task: int) -> multiprocessing.process.BaseProcess:
    process = PROCESSES.Process(target=serve_slot, args=(job.to_json(), server.address, secret, task))
    process.start()
    return process


@pytest.mark.parametrize("protocol", ["none", "uncoordinated"])
def test_every_path_is_there_once_and_the_end_is_found(tmp_path: Path, protocol: str) -> None:
    job, journal = job_of(protocol, tmp_path), tmp_path / "journal.jsonl"
    assert run(job, journal, kill=protocol != "none")
    lost = [entry for entry in raw_entries(journal) if entry["event"] == "worker-lost"]
    assert bool(lost) == (protocol != "none")
    assert emitted(job) == reachable(job.workload, EVENTS)
