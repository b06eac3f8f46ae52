"""What the tests of several drivers, and a benchmark, do with their clusters."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra import local
from infra.cluster import Driver, Handle
from infra.docker import creation
from infra.launch import REPOSITORY
from infra.netns import driver as netns
from infra.services import spark, startup

SLEEP = ["sleep", "600"]
JOINED = "Successfully registered with master"
MAKERS = {ClusterDriver.LOCAL: local, ClusterDriver.NETNS: netns, ClusterDriver.DOCKER: creation}


def times_joined(cluster: Handle) -> int:
    """How often the Spark worker of worker-1 has joined its master."""
    return (cluster.directory("worker-1") / "logs" / "spark-worker.log").read_text(errors="replace").count(JOINED)


def clean() -> str:
    """What `aftershock clean` prints, in a process of its own."""
    command = [sys.executable, "-m", "aftershock.cli.program", "clean"]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout


@contextmanager
def sleeping_cluster(
    driver: Driver, spec: ClusterSpec, root: Path, run_id: str, once_made: Callable[[Handle], None] = lambda _: None
) -> Iterator[Handle]:
    """Hosts on which a process sleeps in Spark's place: all that a fault does to a host, without a JVM. Also
    workers that are healed sleep, as long as the cluster lasts.

    `once_made` gets it when its hosts are there and nothing runs on them. Hosts that were made are gone afterwards,
    also if not all could be.
    """
    lay_out = local.lay_out if spec.driver is ClusterDriver.LOCAL else startup.lay_out_on_bridge
    with patch.object(spark, "worker_command", lambda *_: SLEEP), ExitStack() as ending:
        with startup.one_at_a_time():
            handle = lay_out(spec, run_id, root)
            ending.callback(driver.destroy, handle)
            handle.save()
            for host in handle.hosts:
                (handle.directory(host) / "logs").mkdir(parents=True)
            MAKERS[spec.driver].make_hosts(spec, handle)
        once_made(handle)
        for worker in handle.workers:
            startup.start_worker(driver, handle, worker)
        yield handle
