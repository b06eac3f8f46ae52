"""What this machine has too little of for a run: what is certain to end it is refused, and the rest is a warning."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from aftershock.run import room
from experiments.hosts import ELSEWHERE
from experiments.spec import ClusterSpec
from infra.services.startup import require_disk, wanted_mb
from results.runs.home import home

LEAST_DISK_MB = 4000  # what a run may take, with some room for the next


def check() -> None:
    """Raise `EnvironmentFailure` if less disk is free, where runs are kept, than any run needs."""
    require_disk(existing(home()))


def warnings(spec: ClusterSpec) -> list[str]:
    """In words, what may end or slow down a run that can start; nothing if the machine has enough of all."""
    return [*_disk(), *_memory(spec), *_cores(spec)]


def free_disk_mb(folder: Path) -> int:
    """The free disk where a folder is, or will be made [MB]."""
    return shutil.disk_usage(existing(folder)).free // 2**20


def existing(folder: Path) -> Path:
    """The folder, or else the closest one above it that exists."""
    return next(each for each in (folder, *folder.absolute().parents) if each.exists())


def cores() -> int:
    """The cores of this machine."""
    return os.cpu_count() or 1


def _disk() -> Iterator[str]:
    if (free := free_disk_mb(home())) < LEAST_DISK_MB:
        yield f"{free:,} MB of disk are free where runs are kept ({home()}); a run may take {LEAST_DISK_MB:,} MB"


def _memory(spec: ClusterSpec) -> Iterator[str]:
    free, wanted = room.free_mb(), wanted_mb(spec)
    if spec.driver not in ELSEWHERE and free < wanted:
        yield (
            f"{free:,} MB of memory are free, and the cluster's hosts take up to {wanted:,} MB: step provision refuses"
            " the run unless enough is free by then"
        )


def _cores(spec: ClusterSpec) -> Iterator[str]:
    if spec.driver not in ELSEWHERE and (wanted := spec.workers * spec.worker_cores) > cores():
        yield f"the workers have {wanted} cores, and this machine has {cores()}: they slow each other down"
