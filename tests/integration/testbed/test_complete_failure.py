"""Driver and slots are killed together, and a second driver with its own slots goes on: every result is there once."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from journal.events.testbed import Committed, EpochReady, Finished, Recovering
from testbed.operators import Delivery
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from tests.integration.testbed.driver_programs import DriverProgram, DriverRuns, key_in
from tests.integration.testbed.exact_results import judged

pytestmark = pytest.mark.extended

RATE, SLOTS = 2000.0, 2
CASES = [("coordinated", "global"), ("uncoordinated", "global"), ("batch-aligned", "passive")]


def job_of(folder: Path, protocol: str, recovery: str) -> Job:
    query = NexmarkQuery.Q12
    return Job(
        run_id="complete",
        workload=NexmarkSpec(query=query, window_s=1.0, slide_s=1.0),
        protocol=protocol,
        recovery=recovery,
        slots=SLOTS,
        parallelism=SLOTS,
        input=JobInput(InputKind.GENERATED, None, time.time_ns(), RATE),
        output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, str(folder / "output")),
        store=str(folder / "store"),
        checkpoint_interval_s=0.5,
        batch_length_s=0.1,
        store_key_file=key_in(folder),
    )


@pytest.fixture
def runs(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DriverRuns]:
    made = DriverRuns(job_of(tmp_path, *request.param), tmp_path)
    yield made
    made.close()


def start(runs: DriverRuns) -> DriverProgram:
    """A driver that has committed twice, so that it has gone on from a line and left one to go on from."""
    before = len(runs.told(Committed))
    program = runs.start()
    runs.wait_for(Committed, more_than=before + 1)
    return program


def assert_exact(runs: DriverRuns) -> None:
    (finished,) = runs.told(Finished)
    verdict = judged(runs.job, finished.positions)
    assert verdict.compared
    assert verdict.exact, verdict


@pytest.mark.parametrize("runs", CASES, indirect=True, ids=["-".join(each) for each in CASES])
def test_every_result_is_there_once_though_driver_and_slots_die_twice(runs: DriverRuns) -> None:
    for _ in range(2):
        start(runs).die()
    last = start(runs)
    runs.drain()
    assert last.wait() == 0, runs.log.read_text()
    recoveries = runs.told(Recovering)
    assert [each.epoch for each in recoveries] == sorted({each.epoch for each in recoveries}), "no epoch comes twice"
    assert all(any(each.line.values()) for each in recoveries[1:]), "each went on from checkpoints"
    assert_exact(runs)


@pytest.mark.parametrize("runs", CASES[:1], indirect=True)
def test_a_driver_that_was_taken_for_dead_ends_when_it_wakes(runs: DriverRuns) -> None:
    first = runs.start()
    runs.wait_for(Committed)
    first.signal(signal.SIGSTOP)
    ready = len(runs.told(EpochReady))
    second = runs.start()
    runs.wait_for(EpochReady, more_than=ready)
    first.signal(signal.SIGCONT)
    assert first.wait() != 0
    assert "another driver has taken over" in runs.log.read_text()
    runs.drain()
    assert second.wait() == 0
    assert_exact(runs)
