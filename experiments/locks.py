"""Locks between processes: the kernel frees a lock when its holder dies; a process that waits reports for what.

A lock may be in a folder where every user can write. Anything else under its name is refused, and every wait has a
limit. Only its owner can open it, so that no other user can hold it, unless it is a lock for all users.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from experiments.documents.plain_files import RefusedFile, open_plain
from experiments.errors import EnvironmentFailure
from experiments.users import name_of, user_of
from experiments.waiting import Deadline

log = logging.getLogger(__name__)
LIMIT_S = 600.0
TELL_AFTER_S, TELL_EACH_S, POLL_S = 1.0, 10.0, 0.1
OWN, EVERYBODY = 0o600, 0o644  # modes: who may open a lock; only its owner may write to it
MOST_TRIES = 100  # to open a lock that others make and remove meanwhile
KERNEL_LIST = Path("/proc/locks")


@contextmanager
def locked(
    path: Path, what: str, *, limit_s: float = LIMIT_S, stays: bool = True, shared: bool = False, mode: int = OWN
) -> Iterator[int]:
    """Hold the lock of a file, which is made, and removed again unless it `stays` for others.

    Yields its descriptor: a child that inherits that holds the lock, too. Those who share a lock hold it together, and
    keep out who wants it alone. Raises `EnvironmentFailure` when something else has the file's name, and when the
    holder, which does `what`, still has the lock after `limit_s`.
    """
    descriptor = _acquire(path, what, limit_s, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, mode)
    try:
        yield descriptor
    finally:
        if not stays:
            path.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def locked_if_free(path: Path, *, uid: int | None = None, make: bool = False, shared: bool = False) -> Iterator[bool]:
    """Hold the lock of a file if no other process does: yields whether it is held now, and never waits.

    With `shared`, who holds it shared does not count.

    Raises `RefusedFile` for what is no file, or not of the user `uid`, `FileNotFoundError` for one that is missing and
    not to `make`, and another `OSError` for one that cannot be opened.
    """
    descriptor = _open(path) if make else open_plain(path, os.O_RDWR)
    try:
        if uid is not None and (owner := os.fstat(descriptor).st_uid) != uid:
            raise RefusedFile(path, f"a lock of user {name_of(owner)}")
        yield _take(descriptor, path, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


def is_free(path: Path, *, uid: int | None = None, shared: bool = False) -> bool:
    """Whether no process holds that lock; raises as `locked_if_free` does.

    With `shared`, two that ask at the same moment do not take each other for a holder.
    """
    with locked_if_free(path, uid=uid, shared=shared) as free:
        return free


def _acquire(path: Path, what: str, limit_s: float, operation: int, mode: int) -> int:
    deadline, next_line = Deadline(limit_s), Deadline(TELL_AFTER_S)
    while True:
        descriptor = _open(path, mode)
        if _take(descriptor, path, operation):
            return descriptor
        holder = _holder(descriptor)
        os.close(descriptor)
        if deadline.passed:
            cause = f"{path} is still held after {limit_s:g} s, for {what}, by {holder}"
            raise EnvironmentFailure(cause, "wait for it, or end it")
        if next_line.passed:
            next_line = Deadline(TELL_EACH_S)
            log.warning("waiting for %s by %s, at most %.0f s more", what, holder, deadline.left_s)
        time.sleep(POLL_S)


def _open(path: Path, mode: int = OWN) -> int:
    """Open it, or make it; raises `EnvironmentFailure` for one that can neither be found nor made."""
    for _ in range(MOST_TRIES):
        with suppress(FileNotFoundError):  # its holder has just removed it, or its folder is missing
            return _open_once(path, mode)
    raise EnvironmentFailure(f"{path} cannot be made", "look whether its folder is there")


def _open_once(path: Path, mode: int) -> int:
    """A lock that is made has that mode; the umask does not change it."""
    try:
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, mode)
            os.fchmod(descriptor, mode)
            return descriptor
        try:
            return open_plain(path, os.O_RDWR)
        except PermissionError:
            return open_plain(path)
    except PermissionError as error:
        owner = name_of(os.lstat(path).st_uid)
        raise EnvironmentFailure(f"{path}, of user {owner}, cannot be opened ({error.strerror})", "remove it") from None


def _take(descriptor: int, path: Path, operation: int = fcntl.LOCK_EX) -> bool:
    """Take the lock if no process has it, and the file still has its name: a holder may have removed it."""
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except (BlockingIOError, FileNotFoundError):
        return False


def _holder(descriptor: int) -> str:
    """Who has the lock, as far as the kernel tells."""
    inode = f":{os.fstat(descriptor).st_ino}"
    for line in KERNEL_LIST.read_text().splitlines() if KERNEL_LIST.exists() else []:
        _, kind, *_, pid, file, _, _ = line.replace("->", "").split()
        if kind == "FLOCK" and file.endswith(inode) and (uid := user_of(int(pid))) is not None:
            return f"process {pid} of user {name_of(uid)}"
    return "a process that cannot be seen from here"
