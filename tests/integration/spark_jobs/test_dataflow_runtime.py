"""The testbed on a real standalone cluster: a worker's host dies amid the run, comes back, and nothing is amiss."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.fault_kinds import FaultKind
from experiments.spec import ClusterSpec
from experiments.workloads import NexmarkQuery, NexmarkSpec
from infra import spark
from infra.cluster import Handle
from infra.journal import read_journal
from infra.local import LocalDriver
from infra.services import REPOSITORY
from spark_jobs.dataflow.operators import Delivery
from spark_jobs.dataflow.runtime.job import InputKind, InputSpec, Job, OutputKind, OutputSpec
from spark_jobs.dataflow.runtime.sinks import published
from spark_jobs.dataflow.runtime.sources import stream_of
from tests.integration.conftest import new_run_id
from tests.unit.marked_processes import wait_for
from workloads.nexmark.stream import events
from workloads.schedule import Schedule

TWO_WORKERS = ClusterSpec(workers=2, worker_memory_mb=512)
EVENTS, RATE, WINDOW_MS = 120_000, 10_000.0, 1000
HEADSTART_S = 8  # Spark's time to start; if it takes longer, what is overdue is read at once
CHECKPOINTS_BEFORE_DEATH = 12
LIMIT_S = 90.0


@pytest.fixture(scope="module")
def cluster(driver: LocalDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    root = tmp_path_factory.mktemp("cluster")
    try:
        yield driver.provision(TWO_WORKERS, new_run_id(), root)
    finally:
        if (root / "handle.json").exists():
            driver.destroy(Handle.load(root))


def job_of(protocol: str, query: NexmarkQuery, root: Path) -> Job:
    return Job(
        run_id=root.name,
        workload=NexmarkSpec(query=query, window_s=WINDOW_MS / 1000, slide_s=WINDOW_MS / 1000),
        protocol=protocol,
        slots=2,
        parallelism=2,
        input=InputSpec(InputKind.GENERATED, EVENTS, time.time_ns() + HEADSTART_S * 10**9, RATE),
        output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, str(root / "output")),
        store=str(root / "store"),
        checkpoint_interval_s=0.5,
    )


def submit(driver: LocalDriver, cluster: Handle, job: Job, root: Path) -> Path:
    """Start the driver program on the gateway; returns its journal."""
    root.mkdir(exist_ok=True)
    (root / "job.json").write_text(json.dumps(job.to_json()), encoding="utf-8")
    address = cluster.gateway.address
    conf = {"spark.driver.host": address, "spark.driver.bindAddress": address, "spark.executor.memory": "512m"}
    program, words = REPOSITORY / "spark_jobs" / "dataflow" / "driver.py", (root / "job.json", root / "journal.jsonl")
    driver.spawn(
        cluster, "gateway", "dataflow", spark.submit_command(cluster.master, program, *map(str, words), conf=conf)
    )
    return root / "journal.jsonl"


def happened(journal: Path, event: str) -> list[dict]:
    return [entry for entry in read_journal(journal) if entry["event"] == event]


def exact(job: Job) -> Counter[tuple]:
    bids = events(stream_of(job.workload, Schedule(job.input.start_ns, job.input.rate)), 0, EVENTS).bids
    due_ms, bidders = bids["date_time"].to_pylist(), bids["bidder"].to_pylist()
    if job.workload.query is NexmarkQuery.Q12:
        counts = Counter((b, t // WINDOW_MS * WINDOW_MS * 10**6) for b, t in zip(bidders, due_ms, strict=True))
        return Counter((*group, count) for group, count in counts.items())
    columns = [bids[name].to_pylist() for name in ("position", "auction", "price", "extra")]
    rows = zip(*columns, due_ms, bidders, strict=True)
    return Counter((p, t * 10**6, a, b, 908 * price, extra) for p, a, price, extra, t, b in rows)


def emitted(job: Job) -> Counter[tuple]:
    rows: Counter[tuple] = Counter()
    for table in published(Path(job.output.at)):
        rows.update(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return rows


@pytest.mark.parametrize(
    ("protocol", "query"), [("coordinated", NexmarkQuery.Q12), ("uncoordinated", NexmarkQuery.Q1)]
)
def test_a_host_dies_and_every_result_is_there_once(
    driver: LocalDriver, cluster: Handle, tmp_path: Path, protocol: str, query: NexmarkQuery
) -> None:
    job = job_of(protocol, query, tmp_path)
    journal = submit(driver, cluster, job, tmp_path)
    wait_for(lambda: len(happened(journal, "checkpoint")) >= CHECKPOINTS_BEFORE_DEATH, LIMIT_S)
    assert not happened(journal, "finished")
    assert driver.aim(cluster, "worker-1", FaultKind.KILL).fire().holds
    wait_for(lambda: bool(happened(journal, "worker-lost")), LIMIT_S)
    driver.heal(cluster, "worker-1", FaultKind.KILL)
    wait_for(lambda: bool(happened(journal, "driver-stopped")), LIMIT_S)

    assert happened(journal, "finished")
    first, last = happened(journal, "recovering")[0], happened(journal, "recovering")[-1]
    assert last["epoch"] > first["epoch"]
    assert not any(first["line"].values())
    assert any(last["line"].values()), "it went on from checkpoints"
    wanted, found = exact(job), emitted(job)
    assert (sum((wanted - found).values()), sum((found - wanted).values())) == (0, 0), "lost, duplicated or wrong"
