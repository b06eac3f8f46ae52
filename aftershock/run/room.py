"""The memory that a run takes on a machine that has all of its hosts."""

from __future__ import annotations

import psutil

from experiments.errors import BadInput
from experiments.hosts import ELSEWHERE
from experiments.spec import ClusterSpec
from infra.services.startup import GATEWAY_MEMORY_MB, WORKER_OVERHEAD_MB, workers_that_fit


def free_mb() -> int:
    """What programs can still have on this machine [MB]."""
    return int(psutil.virtual_memory().available) // 2**20


def check(spec: ClusterSpec) -> None:
    """Raise `BadInput` for a cluster that this machine could not hold even if nothing else ran on it."""
    total_mb = psutil.virtual_memory().total // 2**20
    most = workers_that_fit(spec, total_mb)
    if spec.driver in ELSEWHERE or spec.workers <= most:
        return
    taken = (
        f"{GATEWAY_MEMORY_MB:,} MB are for the gateway, and {WORKER_OVERHEAD_MB} MB beside the memory of each worker"
    )
    machine = f"the machine has {total_mb:,} MB, of which {taken}"
    if most:
        allowed = f"at most {most} with {spec.worker_memory_mb:,} MB each: {machine}"
        raise BadInput("cluster.workers", spec.workers, allowed)
    raise BadInput("cluster.worker_memory_mb", spec.worker_memory_mb, f"less: {machine}")
