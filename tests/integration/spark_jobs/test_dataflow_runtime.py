"""The testbed on a real standalone cluster: a worker's host dies amid the run, comes back, and nothing is amiss."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from experiments.fault_kinds import FaultKind
from experiments.spec import ClusterSpec
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from infra.cluster import Handle
from infra.local import LocalDriver
from infra.services import kafka
from journal.reader import raw_entries
from testbed.operators import Delivery
from testbed.queries import as_messages
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from tests.integration.conftest import provisioned
from tests.integration.infra.strangers import assert_nothing_answers
from tests.integration.spark_jobs.submitting import PROGRAM, submit
from tests.integration.testbed.exact_results import exact, judged, messages_out
from tests.unit.marked_processes import wait_for
from workloads.schedule import Schedule
from workloads.sending.load_config import LoadConfig
from workloads.topics import INPUT, OUTPUT

TWO_WORKERS = ClusterSpec(workers=2, worker_memory_mb=512)
RATE, WINDOW_MS = 10_000.0, 1000
CHECKPOINTS = 12  # before the death, and again before the end
LIMIT_S, ENDING_S = 180.0, 30.0


@pytest.fixture(scope="module")
def cluster(driver: LocalDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    with provisioned(driver, TWO_WORKERS, tmp_path_factory.mktemp("cluster")) as made:
        yield made


def job_of(protocol: str, query: NexmarkQuery, kind: InputKind, cluster: Handle, root: Path) -> Job:
    """From generated bids to files, or from topic to topic."""
    files = kind is InputKind.GENERATED
    exact, broker = Delivery.EXACTLY_ONCE, None if files else cluster.kafka
    return Job(
        run_id=root.name,
        workload=NexmarkSpec(query=query, window_s=WINDOW_MS / 1000, slide_s=WINDOW_MS / 1000),
        protocol=protocol,
        slots=2,
        parallelism=2,
        input=JobInput(kind, None, time.time_ns(), RATE, broker),
        output=OutputSpec(OutputKind.FILES if files else OutputKind.KAFKA, exact, str(root / "output"), broker),
        store=str(root / "store"),
        checkpoint_interval_s=0.5,
    )


def generate(driver: LocalDriver, cluster: Handle, job: Job, root: Path) -> None:
    """Start the generator, which goes on until it is stopped."""
    kafka.create_topics(cluster.kafka, {INPUT: 2, OUTPUT: 2})
    config = LoadConfig(cluster.kafka, job.workload, Schedule(job.input.start_ns, RATE, 2))
    (root / "generator.json").write_text(json.dumps(config.to_json()), encoding="utf-8")
    words = [str(root / "generator.json"), str(root / "generator.jsonl")]
    driver.spawn(cluster, "gateway", "generator", [sys.executable, "-m", "workloads.sending.generator", *words])


def happened(journal: Path, event: str) -> list[dict]:
    return [entry for entry in raw_entries(journal) if entry["event"] == event]


def wanted_messages(job: Job, positions: dict[str, int]) -> Counter[bytes]:
    names = ("position", "at_ns", "auction", "bidder", "euros_milli", "extra")
    columns = zip(*exact(job, positions), strict=True)
    rows = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=names)
    return Counter(value.encode() for _, value in as_messages(job.workload, rows, partitions=2))


def strike_amid(driver: LocalDriver, cluster: Handle, journal: Path) -> dict[str, int]:
    """Kill a worker's host once there are checkpoints, let it come back, and end the job when there are more.

    Returns where the sources were at the end.
    """
    wait_for(lambda: len(happened(journal, "checkpoint")) >= CHECKPOINTS, LIMIT_S)
    assert_nothing_answers(cluster.token, at_least=12)  # coordinator and slots listen, too
    assert driver.prepare(cluster, "worker-1", FaultKind.KILL).fire().holds
    wait_for(lambda: bool(happened(journal, "worker-lost")), LIMIT_S)
    driver.heal(cluster, "worker-1", FaultKind.KILL)
    wait_for(lambda: len(since_ready(journal)) >= CHECKPOINTS, LIMIT_S)
    (journal.parent / "job.drain").touch()
    wait_for(lambda: bool(happened(journal, "driver-stopped")), LIMIT_S)
    driver.stop(cluster, "gateway", PROGRAM, ENDING_S)
    (finished,) = happened(journal, "finished")
    first, last = happened(journal, "recovering")[0], happened(journal, "recovering")[-1]
    assert last["epoch"] > first["epoch"]
    assert not any(first["line"].values())
    assert any(last["line"].values()), "it went on from checkpoints"
    return finished["positions"]


def since_ready(journal: Path, event: str = "checkpoint") -> list[dict]:
    """The checkpoints, or other events, since all went on after a loss; none before."""
    entries = list(raw_entries(journal))
    ready = [number for number, entry in enumerate(entries) if entry["event"] == "ready"]
    return [entry for entry in entries[ready[-1] :] if len(ready) > 1 and entry["event"] == event]


@pytest.mark.parametrize(
    ("protocol", "query"),
    [("coordinated", NexmarkQuery.Q12), pytest.param("uncoordinated", NexmarkQuery.Q1, marks=pytest.mark.extended)],
)
def test_a_host_dies_and_every_result_is_there_once(
    driver: LocalDriver, cluster: Handle, tmp_path: Path, protocol: str, query: NexmarkQuery
) -> None:
    job = job_of(protocol, query, InputKind.GENERATED, cluster, tmp_path)
    ends = strike_amid(driver, cluster, submit(driver, cluster, job, tmp_path))
    verdict = judged(job, ends)
    assert verdict.compared
    assert verdict.exact, verdict


@pytest.mark.extended
def test_from_topic_to_topic_every_result_is_committed_once(
    driver: LocalDriver, cluster: Handle, tmp_path: Path
) -> None:
    job = job_of("coordinated", NexmarkQuery.Q1, InputKind.KAFKA, cluster, tmp_path)
    generate(driver, cluster, job, tmp_path)
    try:
        ends = strike_amid(driver, cluster, submit(driver, cluster, job, tmp_path))
    finally:
        driver.stop(cluster, "gateway", "generator", 5.0)
    wanted, found = wanted_messages(job, ends), messages_out(job)
    assert wanted
    assert (sum((wanted - found).values()), sum((found - wanted).values())) == (0, 0), "lost, duplicated or wrong"
