"""The cyclic query in the runtime, without Spark: slots as processes, one killed amid the run; the end is found."""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from experiments.workloads.catalogue import ReachabilitySpec
from journal.reader import raw_entries
from journal.writer import Journal
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from testbed.runtime.network.secret import RunSecret
from testbed.runtime.server.server import Server
from testbed.runtime.slot.slot import Slot
from tests.integration.testbed.exact_results import emitted
from workloads.reachability.input import reachable

pytestmark = pytest.mark.extended

RATE, EVENTS, SLOTS, HERE, LIMIT_S = 1000.0, 4000, 2, "127.0.0.1", 300.0
CHECKPOINTS = 15  # before the death
PROCESSES = multiprocessing.get_context("forkserver")
AMPLE = PartitionLimits()
NO_MEMORY = PartitionLimits(frames_in_flight=1, records_per_message=4, returning_bytes=1)  # for what returns


def job_of(protocol: str, root: Path, limits: PartitionLimits) -> Job:
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
        limits=limits,
    )


def serve_slot(orders: Connection) -> None:
    os.environ["SPARK_LOCAL_IP"] = HERE
    orders.send(None)
    document, address, secret, task = orders.recv()
    Slot(Job.from_json(document), address, secret, task, 0).run()


class SlotProcess:
    """A process that becomes a slot of a run once it is told of it."""

    def __init__(self) -> None:
        self._orders, theirs = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=serve_slot, args=(theirs,))
        self._process.start()

    def is_up(self) -> bool:
        """Whether it has all imports behind it; waits for that."""
        return self._orders.poll(LIMIT_S)

    def begin(self, job: Job, server: Server, secret: RunSecret, task: int) -> None:
        self._orders.send((job.to_json(), server.address, secret, task))

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def end(self) -> None:
        self._process.join(5.0)
        self.kill()


def run(job: Job, slots: list[SlotProcess], journal: Path, kill: bool) -> tuple[bool, bool]:
    """To its end; whether that was found, and whether something has waited in the store.

    One slot is killed once there are checkpoints, and started again.
    """
    secret = RunSecret.draw()
    server, deadline_s = Server(job, secret.token, HERE, Journal(journal)), time.monotonic() + LIMIT_S
    for task, slot in enumerate(slots):
        slot.begin(job, server, secret, task)
    killed, spilled = not kill, False

    def stopping() -> bool:
        nonlocal killed, spilled
        spilled = spilled or any(Path(job.store).glob("*/waiting-*"))
        if not killed and sum(entry["event"] == "checkpoint" for entry in raw_entries(journal)) >= CHECKPOINTS:
            slots[0].kill()
            slots[0], killed = SlotProcess(), True
            slots[0].begin(job, server, secret, 0)
        return time.monotonic() > deadline_s

    try:
        return server.serve(stopping), spilled
    finally:
        server.close()


@pytest.mark.parametrize(
    ("protocol", "limits"),
    [
        ("none", AMPLE),
        ("uncoordinated", AMPLE),
        ("none", NO_MEMORY),
        ("uncoordinated", NO_MEMORY),
        ("communication-induced", NO_MEMORY),
    ],
)
def test_every_path_is_there_once_and_the_end_is_found(tmp_path: Path, protocol: str, limits: PartitionLimits) -> None:
    slots, journal = [SlotProcess() for _ in range(SLOTS)], tmp_path / "journal.jsonl"
    try:
        assert all(each.is_up() for each in slots)  # input that came before would be read at once
        job = job_of(protocol, tmp_path, limits)
        found, spilled = run(job, slots, journal, kill=protocol != "none")
    finally:
        for each in slots:
            each.end()
    assert found
    assert spilled == (limits is NO_MEMORY)
    lost = [entry for entry in raw_entries(journal) if entry["event"] == "worker-lost"]
    assert bool(lost) == (protocol != "none")
    assert emitted(job) == reachable(job.workload, EVENTS)
