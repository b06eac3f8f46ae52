"""A cluster of which only the broker runs: for tests and benchmarks that need Kafka, and no Spark cluster."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.spec import ClusterSpec
from infra import credentials
from infra.cluster import HANDLE_FILE, Handle
from infra.launch import BROKER_PORT
from infra.local import LocalDriver, lay_out
from infra.services import gateway, kafka, startup


def new_run_id() -> str:
    return f"test-{uuid.uuid4().hex[:8]}"


@contextmanager
def lone_broker(driver: LocalDriver, root: Path) -> Iterator[Handle]:
    """A broker below `root` that answers; it ends with the block."""
    try:
        with startup.one_at_a_time():
            handle = lay_out(ClusterSpec(workers=1), new_run_id(), root)
            logs = handle.directory(handle.gateway.name) / "logs"
            logs.mkdir(parents=True)
            handle.save()  # who has no handle is cleaned away
            credentials.make(root)
            gateway.start_broker(driver, handle)
        gateway.wait_port(handle.gateway.address, BROKER_PORT, logs / "broker.log")
        kafka.wait_ready(handle.kafka, logs / "broker.log")
        yield handle
    finally:
        if (root / HANDLE_FILE).exists():
            driver.destroy(Handle.load(root))
