"""Scratch folders beside the runs, and the removal of those that a killed process left.

A folder belongs to the process that holds the lock of the same name. The lock is made before the folder and removed
after it, and the kernel frees it when its process dies. So a folder whose lock is free, or missing, has no owner.

A result that a newer version replaces may be moved aside meanwhile, beside the newer version: the run ID to
*/.ID.aside, and the table or figure of a paper to reproductions/PAPER/.FIGURE.aside. Whoever removes the folder gives
it its place again, if that is free.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from experiments.documents.plain_files import RefusedFile
from experiments.locks import locked, locked_if_free

PREFIX, LOCK = ".scratch-", ".lock"
ASIDE = ".aside"  # ends the name of a result that was moved aside for a newer version of it


@contextmanager
def scratch(home: Path) -> Iterator[Path]:
    """A folder of one's own, on the file system of the runs, that goes away with all that is in it."""
    home.mkdir(parents=True, exist_ok=True)
    sweep(home)
    folder = home / f"{PREFIX}{uuid4().hex}"
    with locked(folder.with_suffix(LOCK), "a sweep of the home", stays=False):
        try:
            folder.mkdir()
            yield folder
        finally:
            _remove(folder, home)


def sweep(home: Path) -> list[Path]:
    """Remove what killed processes left, and return the folders that were.

    A result that one had moved aside gets its place again, if that is free.
    """
    left = [each for each in home.glob(f"{PREFIX}*") if each.suffix != LOCK and not each.with_suffix(LOCK).exists()]
    for folder in left:
        _remove(folder, home)
    for lock in home.glob(f"{PREFIX}*{LOCK}"):
        with suppress(OSError, RefusedFile), locked_if_free(lock) as free:  # gone meanwhile, or another user's
            if free:
                left.append(lock.with_suffix(""))
                _remove(left[-1], home)
                lock.unlink()
    return left


def _remove(folder: Path, home: Path) -> None:
    for aside, place in _moved_aside(folder, home):
        with suppress(FileNotFoundError):  # another sweeps as well
            if not place.exists():
                aside.rename(place)
    shutil.rmtree(folder, ignore_errors=True)


def _moved_aside(folder: Path, home: Path) -> Iterator[tuple[Path, Path]]:
    """Each result that was moved aside, and its place."""
    for aside in folder.glob(f"*/.*{ASIDE}"):
        yield aside, home / "runs" / _name(aside)
    for aside in folder.glob(f"reproductions/*/.*{ASIDE}"):
        yield aside, home / aside.parent.relative_to(folder) / _name(aside)


def _name(aside: Path) -> str:
    return aside.name.removeprefix(".").removesuffix(ASIDE)
