"""Slots in processes of their own, one record a message: ranges cross connections, and a slot is killed on the way."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from journal.events.testbed import CheckpointStored, WorkerLost
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from tests.integration.testbed.exact_results import judged
from tests.integration.testbed.job_runs import JobRun
from tests.unit.testbed.campaigns import quick

RATE = 1_000.0


@pytest.mark.parametrize("protocol", quick(["coordinated", "communication-induced"], ["communication-induced"]))
def test_a_killed_slot_costs_no_message_of_a_range(protocol: str, tmp_path: Path) -> None:
    job = Job(
        run_id="ranges",
        workload=NexmarkSpec(query=NexmarkQuery.Q12),
        protocol=protocol,
        slots=2,
        parallelism=2,
        input=JobInput(InputKind.GENERATED, None, time.time_ns(), RATE),
        output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, str(tmp_path / "output")),
        store=str(tmp_path / "store"),
        checkpoint_interval_s=1.0,
        limits=PartitionLimits(records_per_message=1),
    )
    run = JobRun(job, tmp_path)
    try:
        for _ in range(2):
            run.come()
        run.wait(lambda: len(run.told(CheckpointStored)) > 12)
        run.kill(1)
        run.wait(lambda: bool(run.told(WorkerLost)))
        run.come()
        verdict = judged(job, run.drain())
        assert verdict.compared
        assert verdict.exact, verdict
    finally:
        run.close()
