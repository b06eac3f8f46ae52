"""The memory that a run takes on a machine that has all of its hosts."""

from __future__ import annotations

import psutil

from experiments.errors import BadInput
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec

GATEWAY_MB = 2500  # broker, Spark master, query driver, Airflow: what a run of the examples takes beside its workers
ELSEWHERE = {ClusterDriver.SSH, ClusterDriver.EXTERNAL}  # their hosts are other machines, which have room or not


def wanted_mb(spec: ClusterSpec) -> int:
    """What all hosts of a cluster take together, if every worker uses what it may [MB]."""
    return GATEWAY_MB + spec.workers * spec.worker_memory_mb


def free_mb() -> int:
    """What programs can still have on this machine [MB]."""
    return int(psutil.virtual_memory().available) // 2**20


def check(spec: ClusterSpec) -> None:
    """Raise `BadInput` for a cluster that this machine could not hold even if nothing else ran on it."""
    total_mb = psutil.virtual_memory().total // 2**20
    if spec.driver in ELSEWHERE or wanted_mb(spec) <= total_mb:
        return
    most = (total_mb - GATEWAY_MB) // spec.worker_memory_mb
    beside = f"beside {GATEWAY_MB:,} MB for everything else"
    if most > 0:
        allowed = f"at most {most} with {spec.worker_memory_mb:,} MB each: the machine has {total_mb:,} MB, {beside}"
        raise BadInput("cluster.workers", spec.workers, allowed)
    allowed = f"less: the machine has {total_mb:,} MB, {beside}"
    raise BadInput("cluster.worker_memory_mb", spec.worker_memory_mb, allowed)
