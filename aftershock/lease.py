"""Who still works on a run: a lock that its command and Airflow's process share, and that the kernel frees with them.

Runs that a scheduler began have none: their DAG run goes on when the scheduler is started again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

from experiments.errors import EnvironmentFailure
from experiments.plain_files import open_plain


class Lease(StrEnum):
    HELD = "held"
    FREE = "free"  # whoever worked on the run has died
    NONE = "none"


def lease_path(live_directory: Path) -> Path:
    """Beside the live directory of the run, which only its first step makes."""
    return live_directory.with_name(f".{live_directory.name}.lease")


@contextmanager
def lease(live_directory: Path) -> Iterator[int]:
    """Hold the lease of a run; yields the descriptor that a child must inherit to hold it, too."""
    path = lease_path(live_directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _acquire(path)
    try:
        yield descriptor
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path) -> int:
    """The lock of that file, which whoever cleans up may remove before it is held."""
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                return descriptor
        os.close(descriptor)


def state_of(live_directory: Path, uid: int | None = None) -> Lease:
    """Whether someone works on the run of that live directory; only a lease of that user counts, if one is named."""
    try:
        descriptor = open_plain(lease_path(live_directory), os.O_RDWR)
    except (FileNotFoundError, NotADirectoryError, PermissionError, EnvironmentFailure):  # none, or not ours to open
        return Lease.NONE
    try:
        if uid is not None and os.fstat(descriptor).st_uid != uid:
            return Lease.NONE
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return Lease.HELD
    finally:
        os.close(descriptor)
    return Lease.FREE
