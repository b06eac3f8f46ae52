"""Slots in processes of their own, one record a message: ranges cross connections, and a slot is killed on the way."""

from __future__ import annotations

import copy
import time
from collections import Counter
from pathlib import Path

import pytest

from experiments.workloads import NexmarkQuery, NexmarkSpec
from journal.events.testbed import CheckpointStored, WorkerLost
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import END_OF_TIME_NS, Aggregate, Delivery, Source
from testbed.runtime.connectors.sources import maker_of
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from tests.integration.testbed.job_runs import JobRun
from tests.unit.testbed.campaigns import quick
from workloads.schedule import Schedule

EVENTS, RATE = 9_000, 1_000.0


def wanted(job: Job) -> Counter[tuple]:
    """What Q12 must put out: for each bidder and window the number of bids."""
    layout = job.layout().partitions
    source = next(each for each in layout if isinstance(each.element, Source))
    counting = copy.deepcopy(next(each.element for each in layout if isinstance(each.element, Aggregate)))
    counting.open()
    read = maker_of(job.workload, Schedule(job.input.start_ns, RATE, job.parallelism), source)(0, EVENTS)
    counting.process(0, source.element.process(read))
    rows = counting.advance(END_OF_TIME_NS)
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@pytest.mark.parametrize("protocol", quick(["coordinated", "communication-induced"], ["communication-induced"]))
def test_a_killed_slot_costs_no_message_of_a_range(protocol: str, tmp_path: Path) -> None:
    job = Job(
        run_id="ranges",
        workload=NexmarkSpec(query=NexmarkQuery.Q12),
        protocol=protocol,
        slots=2,
        parallelism=2,
        input=JobInput(InputKind.GENERATED, EVENTS, time.time_ns(), RATE),
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
        run.wait_for_the_end()
        assert run.is_complete
        assert run.published() == wanted(job)
    finally:
        run.close()
