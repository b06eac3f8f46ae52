"""Real clusters and a real Spark session. They end with the module that used them: the next one needs the memory."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from experiments.spec import ClusterSpec
from infra.cluster import HANDLE_FILE, Driver, Handle
from infra.local import LocalDriver
from spark_jobs.streaming.job import STATE_STORE
from tests.integration.local_spark import session_of
from tests.integration.lone_broker import lone_broker, new_run_id

ONE_WORKER = ClusterSpec(workers=1, worker_memory_mb=512)


@contextmanager
def provisioned(driver: Driver, spec: ClusterSpec, root: Path) -> Iterator[Handle]:
    """A cluster below `root`. It is destroyed at the end, even if its creation failed halfway."""
    try:
        yield driver.provision(spec, new_run_id(), root)
    finally:
        if (root / HANDLE_FILE).exists():
            driver.destroy(Handle.load(root))


@pytest.fixture(scope="session")
def driver() -> LocalDriver:
    return LocalDriver()


@pytest.fixture(scope="module")
def cluster(driver: LocalDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    """A cluster with one worker; the tests of a module share it and leave its worker up."""
    root: Path = tmp_path_factory.mktemp("cluster")
    with provisioned(driver, ONE_WORKER, root) as handle:
        yield handle


@pytest.fixture(scope="module")
def broker(driver: LocalDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    """A cluster of which only the broker runs; the tests of a module share it and leave it up."""
    with lone_broker(driver, tmp_path_factory.mktemp("broker")) as handle:
        yield handle


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A local Spark session on two cores, with the Kafka connector and the state store of the query driver."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    }
    with session_of("aftershock-tests", 2, settings) as session:
        # At the end of the process py4j tells that its connections close, when the files of logging are closed already.
        logging.getLogger("py4j").setLevel(logging.WARNING)
        yield session
