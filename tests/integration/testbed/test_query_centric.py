"""Slots in processes of their own: some are killed at once, others come one by one, and so do the queries."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from experiments.workloads.hashtags import HashtagsSpec, HashtagTopology
from journal.events.testbed import CheckpointStored, PartitionReached, WorkerJoined, WorkerLost
from testbed.operators import Delivery
from testbed.runtime.connectors.sources import Generated
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from tests.integration.testbed.job_runs import JobRun
from tests.unit.testbed.queries.hashtag_queries import exact
from workloads.hashtags.input import tweets
from workloads.schedule import Schedule

RATE = 250.0


@pytest.fixture
def started(tmp_path: Path):
    spec = HashtagsSpec(topology=HashtagTopology.TWO_WINDOWS, window_s=3.0, hashtags=50, priorities=(1, 9))
    job = Job(
        run_id="queries",
        workload=spec,
        protocol="batch-aligned",
        slots=5,
        parallelism=1,
        input=JobInput(InputKind.GENERATED, None, time.time_ns() // 10**9 * 10**9, RATE),
        output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, str(tmp_path / "output")),
        store=str(tmp_path / "store"),
        recovery="query-centric",
        checkpoint_interval_s=1.0,
    )
    run = JobRun(job, tmp_path)
    for _ in range(5):
        run.come()
    yield run
    run.close()


def test_killed_slots_come_back_one_by_one_and_so_do_queries(started: JobRun) -> None:
    started.wait(lambda: {each.partition for each in started.told(CheckpointStored)} >= {"o0.0", "q1.0"})
    lost = len(started.told(WorkerLost))
    for number in range(4):
        started.kill(number)
    started.wait(lambda: len(started.told(WorkerLost)) >= lost + 4)
    for _ in range(4):
        started.come()
    events = started.drain()["tweets.0"] * Generated.block_events(RATE)
    spec, schedule = started.job.workload, Schedule(started.job.input.start_ns, RATE)
    wanted = exact(spec, {"tweets": [[tweets(spec, schedule, 0, events)]]})
    assert started.published() == wanted
    # The fifth slot has kept the sink of the favoured query. So this one is complete with the source and one more.
    first = next(each.at_ns for each in started.told(PartitionReached) if each.partition == "o1.0" and each.epoch > 1)
    assert first < started.told(WorkerJoined)[-1].at_ns
