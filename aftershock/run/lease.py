"""The lease of a run: a lock that its command and Airflow's process share, and that the kernel frees when both died.

Runs that a scheduler began have none: their DAG run goes on when the scheduler is started again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from experiments.errors import EnvironmentFailure
from experiments.locks import is_free, locked


class Lease(StrEnum):
    """Whether a process that works on a run holds its lock: held, free, or there is no lock."""

    HELD = "held"
    FREE = "free"  # the process that worked on the run has died
    NONE = "none"


def lease_path(live_directory: Path) -> Path:
    """Beside the live directory of the run, which only its first step makes."""
    return live_directory.with_name(f".{live_directory.name}.lease")


@contextmanager
def lease(live_directory: Path) -> Iterator[int]:
    """Hold the lease of a run; yields the descriptor that a child must inherit to hold it, too."""
    path = lease_path(live_directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path, f"the work on run {live_directory.name}", stays=False) as descriptor:
        yield descriptor


def state_of(live_directory: Path, uid: int | None = None) -> Lease:
    """Whether someone works on the run of that live directory; only a lease of that user counts, if one is named."""
    try:  # pages ask every few seconds: an abort must not take them for the holder
        return Lease.FREE if is_free(lease_path(live_directory), uid=uid, shared=True) else Lease.HELD
    except (FileNotFoundError, NotADirectoryError, PermissionError, EnvironmentFailure):  # none, or not ours to open
        return Lease.NONE
