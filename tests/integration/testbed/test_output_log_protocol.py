"""Slots in processes of their own under protocol `output-log`: they are killed, and the averages are exact."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from experiments.workloads.cec_prices import CecPricesSpec
from journal.events.testbed import CheckpointStored, PartitionLoaded, Recovering, Report, WorkerLost
from testbed.operators import Delivery
from testbed.output_log.policies import CheckPacing, Saving
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from tests.integration.testbed.exact_results import judged
from tests.integration.testbed.job_runs import JobRun

RATE, SLOTS = 1000.0, 3
SPEC = CecPricesSpec(items=600, window_records=10, least_price=200, stream_seed=5)


PACE = CheckPacing(0.005, 0.02)
SAVINGS = {"targets": Saving(extent=500, replay=2000, pace=PACE), "costs": Saving(failure_rate=1.0, pace=PACE)}


@pytest.fixture(params=["targets", pytest.param("costs", marks=pytest.mark.extended)])
def started(tmp_path: Path, request: pytest.FixtureRequest):
    job = Job(
        run_id="averages",
        workload=SPEC,
        protocol="output-log",
        slots=SLOTS,
        parallelism=SLOTS,
        input=JobInput(InputKind.GENERATED, None, time.time_ns() // 10**9 * 10**9, RATE),
        output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, str(tmp_path / "output")),
        store=str(tmp_path / "store"),
        recovery="passive",
        chaining=False,
        checkpoint_interval_s=0.5,
        silence_limit_s=30.0,
        saving=SAVINGS[request.param],
    )
    run = JobRun(job, tmp_path)
    for _ in range(SLOTS):
        run.come()
    yield run
    run.close()


def most_checks(run: JobRun) -> int:
    """How often the parts of a partition's windows were saved, of the partition with the most."""
    return max((log["checks"] for report in run.told(Report) for log in report.logs.values()), default=0)


def test_killed_slots_rebuild_their_windows_from_their_logs(started: JobRun) -> None:
    for number in range(3):
        known = len(started.told(CheckpointStored))
        started.wait(lambda known=known: len(started.told(CheckpointStored)) > known + 8 * SLOTS)
        started.kill(number)
        started.wait(lambda number=number: len(started.told(WorkerLost)) > number)
        started.come()
    # Windows were saved again, by a target or because it pays.
    started.wait(lambda: most_checks(started) > 100)
    verdict = judged(started.job, started.drain())
    assert verdict.compared
    assert verdict.exact, verdict
    later = [each for each in started.told(Recovering) if each.epoch > 1]
    assert len(later) >= 3
    # Only what was lost went back, and the sources further than the averages, which input from before their border.
    assert all(len(each.restored) < 4 * SLOTS for each in later)
    assert any(min(each.line.values()) < max(each.line.values()) for each in later)
    loaded = [each for each in started.told(PartitionLoaded) if each.partition.startswith("average") and each.epoch > 1]
    assert len(loaded) >= 3
    assert max(each.size_bytes for each in loaded) > 1000
