"""Folders beside the runs for what is not yet, or no longer, one of them; what a killed process left in one is swept.

A folder belongs to whoever holds the lock of the same name. The lock is there first and goes last, and the kernel frees
it with its process: a folder whose lock is free, or gone, is nobody's.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX, LOCK = ".scratch-", ".lock"
ASIDE = ".aside"  # ends the name of a run that was moved aside for a newer version of it


@contextmanager
def scratch(home: Path) -> Iterator[Path]:
    """A folder of one's own, on the file system of the runs, that goes away with all that is in it."""
    home.mkdir(parents=True, exist_ok=True)
    sweep(home)
    with _own_lock(home) as lock:
        folder = lock.with_suffix("")
        try:
            folder.mkdir()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def sweep(home: Path) -> list[Path]:
    """Remove what killed processes left, and return the folders that were.

    A run that one had moved aside gets its place again, if that is free.
    """
    left = [each for each in home.glob(f"{PREFIX}*") if each.suffix != LOCK and not each.with_suffix(LOCK).exists()]
    for folder in left:
        _remove(folder, home)
    for lock in home.glob(f"{PREFIX}*{LOCK}"):
        with suppress(OSError), lock.open("r+") as file:  # gone meanwhile, or another user's
            if _is_free(file.fileno()):
                left.append(lock.with_suffix(""))
                _remove(left[-1], home)
                lock.unlink()
    return left


def _remove(folder: Path, home: Path) -> None:
    for aside in folder.glob(f"*/.*{ASIDE}"):
        place = home / "runs" / aside.name.removeprefix(".").removesuffix(ASIDE)
        with suppress(FileNotFoundError):  # another sweeps as well
            if not place.exists():
                aside.rename(place)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _own_lock(home: Path) -> Iterator[Path]:
    descriptor, name = _made(home)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
        os.close(descriptor)


def _made(home: Path) -> tuple[int, str]:
    """A lock file that is locked; one that was taken for a dead process's before it was locked is made again."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=PREFIX, suffix=LOCK, dir=home)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.exists(name):
            return descriptor, name
        os.close(descriptor)


def _is_free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
