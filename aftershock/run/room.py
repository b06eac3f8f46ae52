"""What a run takes of this machine: what is certain to end the run is refused, and the rest that lacks is a warning."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil

from experiments.errors import BadInput
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra.services import startup
from infra.services.startup import GATEWAY_MEMORY_MB, WORKER_OVERHEAD_MB, wanted_mb, workers_that_fit
from results.runs.home import home

ELSEWHERE = {ClusterDriver.SSH, ClusterDriver.EXTERNAL}  # their hosts are other machines, which have room or not
LEAST_DISK_MB = 4000  # what a run may take, with some room for the next


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


def require_disk() -> None:
    """Raise `EnvironmentFailure` if less disk is free, where runs are kept, than any run needs."""
    startup.require_disk(_existing(home()))


def warnings(spec: ClusterSpec) -> list[str]:
    """In words, what may end or slow down a run that can start; nothing if the machine has enough of all."""
    return [*_disk(), *_memory(spec), *_cores(spec)]


def free_memory_mb() -> int:
    """What programs can still have on this machine [MB]."""
    return int(psutil.virtual_memory().available) // 2**20


def free_disk_mb() -> int:
    """The free disk where runs are kept [MB]."""
    return shutil.disk_usage(_existing(home())).free // 2**20


def cores() -> int:
    """The cores of this machine."""
    return os.cpu_count() or 1


def _existing(folder: Path) -> Path:
    """The folder, or else the closest one above it that exists."""
    return next(each for each in (folder, *folder.absolute().parents) if each.exists())


def _disk() -> Iterator[str]:
    if (free := free_disk_mb()) < LEAST_DISK_MB:
        yield f"{free:,} MB of disk are free where runs are kept ({home()}); a run may take {LEAST_DISK_MB:,} MB"


def _memory(spec: ClusterSpec) -> Iterator[str]:
    free, wanted = free_memory_mb(), wanted_mb(spec)
    if spec.driver not in ELSEWHERE and free < wanted:
        yield (
            f"{free:,} MB of memory are free, and the cluster's hosts take up to {wanted:,} MB: step provision refuses"
            " the run unless enough is free by then"
        )


def _cores(spec: ClusterSpec) -> Iterator[str]:
    if spec.driver not in ELSEWHERE and (wanted := spec.workers * spec.worker_cores) > cores():
        yield f"the workers have {wanted} cores, and this machine has {cores()}: they slow each other down"
