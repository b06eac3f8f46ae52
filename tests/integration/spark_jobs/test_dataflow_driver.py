"""A driver of the testbed is killed amid a run, as a `driver-kill` fault does it, and its supervisor starts another.

From topic to topic, every result is committed once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.fault_kinds import GATEWAY, FaultKind
from experiments.workloads.catalogue import NexmarkQuery
from infra.cluster import Handle
from infra.local import LocalDriver
from testbed.runtime.job import InputKind
from tests.integration.conftest import provisioned
from tests.integration.spark_jobs.submitting import command_of
from tests.integration.spark_jobs.test_dataflow_runtime import (
    ENDING_S,
    LIMIT_S,
    TWO_WORKERS,
    generate,
    happened,
    job_of,
    wanted_messages,
)
from tests.integration.testbed.exact_results import messages_out
from tests.unit.marked_processes import wait_for

pytestmark = pytest.mark.extended

LINES = 3  # before each death, and before the end
LAST = 2  # the driver after the second death
SERVICE = "query"  # the one that `driver-kill` strikes


@pytest.fixture
def cluster(driver: LocalDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    """Each run has topics of its own."""
    with provisioned(driver, TWO_WORKERS, tmp_path_factory.mktemp("cluster")) as made:
        yield made


def since_started(journal: Path, driver: int, event: str) -> list[dict]:
    """What happened since this driver started, the first being 0; nothing before."""
    started = happened(journal, "driver-started")
    return [
        each for each in happened(journal, event) if driver < len(started) and each["at_ns"] > started[driver]["at_ns"]
    ]


def restored_by_the_last(journal: Path) -> set[tuple[int, str]]:
    """Epochs and partitions that the last driver has restored: its slots may come one by one."""
    found = since_started(journal, LAST, "recovering")
    return {(each["epoch"], name) for each in found for name in each["restored"]}


def all_are_back(journal: Path, names: set[str]) -> bool:
    """Whether the last driver has restored all of these, and they are as far as they had been."""
    restored = restored_by_the_last(journal)
    return {name for _, name in restored} == names and restored <= back(journal)


def back(journal: Path) -> set[tuple[int, str]]:
    """Epochs and partitions that are as far as they had been."""
    return {(each["epoch"], each["partition"]) for each in happened(journal, "partition-reached")}


def newest_record(store: Path) -> int:
    """The number of the newest record that a driver has left for the next one."""
    return max((int(path.name.rpartition("-")[2]) for path in store.glob("driver/record-*")), default=0)


def wait_until_recorded(store: Path) -> None:
    """Return once the next driver will find what has been committed by now.

    Sinks publish whole batches without waiting for the record of a line. One may be under way that does not have the
    line yet; the one after it has.
    """
    told = newest_record(store)
    wait_for(lambda: newest_record(store) >= told + 2, LIMIT_S)


@pytest.mark.parametrize(("protocol", "recovery"), [("coordinated", "global"), ("batch-aligned", "query-centric")])
def test_every_result_is_committed_once_though_the_driver_is_killed_twice(
    driver: LocalDriver, cluster: Handle, tmp_path: Path, protocol: str, recovery: str
) -> None:
    job = job_of(protocol, NexmarkQuery.Q1, InputKind.KAFKA, cluster, tmp_path)
    job = replace(job, recovery=recovery, store_key_file=str(cluster.store_key))
    generate(driver, cluster, job, tmp_path)
    journal = tmp_path / "journal.jsonl"
    supervisor = [sys.executable, "-m", "infra.services.supervisor", str(tmp_path / "supervisor.jsonl")]
    try:
        driver.spawn(cluster, GATEWAY, SERVICE, [*supervisor, *command_of(cluster, job, tmp_path)])
        wait_for(lambda: len(happened(journal, "committed")) >= LINES, LIMIT_S)
        wait_until_recorded(tmp_path / "store")
        for death in range(1, LAST + 1):
            assert driver.prepare(cluster, GATEWAY, FaultKind.DRIVER_KILL).fire().holds
            driver.heal(cluster, GATEWAY, FaultKind.DRIVER_KILL)
            wait_for(lambda number=death: len(since_started(journal, number, "committed")) >= LINES, LIMIT_S)
            wait_until_recorded(tmp_path / "store")
        if recovery != "global":  # a source that is drained sooner is never as far again as it was
            names = {each.name for each in job.layout().partitions}
            wait_for(lambda: all_are_back(journal, names), LIMIT_S)
        (tmp_path / "job.drain").touch()
        wait_for(lambda: bool(happened(journal, "driver-stopped")), LIMIT_S)
    finally:
        driver.stop(cluster, GATEWAY, SERVICE, ENDING_S)
        driver.stop(cluster, GATEWAY, "generator", 5.0)
    (finished,) = happened(journal, "finished")
    recoveries = happened(journal, "recovering")
    assert [each["epoch"] for each in recoveries] == sorted({each["epoch"] for each in recoveries})
    assert len(happened(journal, "driver-started")) == LAST + 1
    of_successors = since_started(journal, 1, "recovering")
    assert all(any(each["line"].values()) for each in of_successors), "each went on from checkpoints"
    assert not happened(journal, "failed")
    if recovery != "global":
        assert all_are_back(journal, names)
        assert all(any(each["reached"].values()) for each in of_successors), "the driver before told how far they were"
    wanted, found = wanted_messages(job, finished["positions"]), messages_out(job)
    assert wanted
    assert (sum((wanted - found).values()), sum((found - wanted).values())) == (0, 0), "lost, duplicated or wrong"
