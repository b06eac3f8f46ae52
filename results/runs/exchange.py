"""Exchanges two directories atomically, so that a reader always finds one of them."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from results.runs.scratch import ASIDE

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # linux/fcntl.h, linux/fs.h
NOT_OFFERED = (errno.EINVAL, errno.ENOSYS)  # by the file system (NFS), by the kernel


def exchange(first: Path, second: Path) -> None:
    """Let two directories of one file system change places; raises `OSError` as a rename does.

    One step where kernel and file system offer it. Elsewhere `second` is missing for an instant.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        in_three_steps(first, second)
        return
    if libc.renameat2(AT_FDCWD, os.fsencode(first), AT_FDCWD, os.fsencode(second), RENAME_EXCHANGE) == 0:
        return
    code = ctypes.get_errno()
    if code not in NOT_OFFERED:
        raise OSError(code, os.strerror(code), str(second))
    in_three_steps(first, second)


def in_three_steps(first: Path, second: Path) -> None:
    """Replace `second` by `first` so that no interruption loses `second`: the old one stays beside `first` until then.

    If the process is killed in between, the next sweep of the scratch folder puts it back (`results.runs.scratch`).
    """
    aside = first.with_name(f".{second.name}{ASIDE}")
    second.rename(aside)
    try:
        first.rename(second)
    except BaseException:
        aside.rename(second)
        raise
    aside.rename(first)
