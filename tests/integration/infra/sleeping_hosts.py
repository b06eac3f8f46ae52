"""Hosts in namespaces on which a process sleeps in Spark's place: all that a fault does to a host, without a JVM."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiments.errors import AftershockError
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra.cluster import Handle
from infra.netns import driver as netns
from infra.netns.driver import NetnsDriver
from infra.services import spark, startup

SLEEP = ["sleep", "600"]


@contextmanager
def sleeping_cluster(driver: NetnsDriver, root: Path, workers: int) -> Iterator[Handle]:
    """A cluster with such hosts; also workers that are healed sleep, as long as it lasts."""
    spec = ClusterSpec(driver=ClusterDriver.NETNS, workers=workers, worker_disk_mb=64)
    try:
        driver.check(spec)
    except AftershockError as error:
        pytest.skip(str(error))
    with startup.one_at_a_time():
        handle = netns.lay_out(spec, f"test-{os.getpid()}", root)
        handle.save()
        for host in handle.hosts:
            (handle.directory(host) / "logs").mkdir(parents=True)
        netns.make_hosts(spec, handle)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark, "worker_command", lambda *_: SLEEP)
        try:
            for worker in handle.workers:
                startup.start_worker(driver, handle, worker)
            yield handle
        finally:
            driver.destroy(handle)
