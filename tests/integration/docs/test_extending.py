"""The examples of docs/guides/extending.md that need a JVM: workload against oracle, and the driver's hosts."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from docs.examples.extending.driver import PinnedDriver
from docs.examples.extending.workload import PageViewsSpec, oracle, query, records
from experiments.errors import BadInput
from experiments.spec import ClusterSpec
from infra.cluster import Driver, Handle
from infra.processes import members
from infra.services.startup import handle_of
from spark_jobs.tables.quality import quality
from tests.integration.input_topics import topic
from tests.unit.marked_processes import wait_for
from workloads.results import COLUMNS
from workloads.schedule import Schedule

pytestmark = pytest.mark.extended

VIEWS, PARTITIONS = 3000, 2
SCHEDULE = Schedule(1_795_173_799_675_000_000, 100.0, PARTITIONS)


@pytest.fixture(scope="module")
def views(spark: SparkSession) -> DataFrame:
    """Half a minute of the example's input, as it would stand in the topic."""
    return topic(spark, records(PageViewsSpec(), SCHEDULE)(0, VIEWS), SCHEDULE)


@pytest.mark.parametrize("spec", [PageViewsSpec(), PageViewsSpec(window_s=6, slide_s=2)], ids=["tumbling", "sliding"])
def test_the_workload_and_its_oracle_agree_record_by_record(views: DataFrame, spec: PageViewsSpec) -> None:
    found, exact = query(views, spec), oracle(views, spec)
    assert tuple(found.columns) == tuple(exact.columns) == COLUMNS
    windows = quality(found, exact, F.lit(True)).collect()
    assert len(windows) > 3
    assert sum(window["exact"] for window in windows) > 1000
    assert {window[name] for window in windows for name in ("lost", "duplicated", "wrong")} == {0}


@pytest.fixture
def handle(tmp_path: Path) -> Iterator[tuple[Driver, Handle]]:
    """Hosts of the example's driver, without anything on them."""
    driver = PinnedDriver()
    spec = ClusterSpec(workers=len(os.sched_getaffinity(0)))
    made = handle_of(spec, f"test-{uuid.uuid4().hex[:8]}", tmp_path, subnet=253, network="127.0.253")
    for host in made.hosts:
        (made.directory(host) / "logs").mkdir(parents=True)
    made.save()  # who has no handle is cleaned away
    yield driver, made
    driver.destroy(made)


def test_a_worker_of_the_driver_has_cores_of_its_own_and_the_gateway_has_all(handle: tuple[Driver, Handle]) -> None:
    driver, made = handle
    every = sorted(os.sched_getaffinity(0))
    pids = {host: driver.spawn(made, host, "service", ["sleep", "60"]) for host in made.hosts}
    wait_for(lambda: all(Path(f"/proc/{pid}/comm").read_text() == "sleep\n" for pid in pids.values()))
    found = {host: sorted(os.sched_getaffinity(pid)) for host, pid in pids.items()}
    workers = {worker.name: [core] for worker, core in zip(made.workers, every, strict=True)}
    assert found == {"gateway": every, **workers}
    assert driver.running(made, "worker-1") == {"service"}
    driver.destroy(made)
    assert members(made.token) == []


def test_the_driver_refuses_more_workers_than_cores() -> None:
    with pytest.raises(BadInput, match=r"^cluster\.workers: [^\n]*cores each with driver pinned"):
        PinnedDriver().check(ClusterSpec(workers=250))
