"""Files that another user may have put there: opened only if they are regular, without following links or waiting.

A FIFO would make the reader wait for ever, a link would lead it elsewhere, and some devices act when they are opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from experiments.errors import EnvironmentFailure

LARGEST_BYTES = 2**20
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotPlain(EnvironmentFailure):
    """What has the name of a file is something else."""

    def __init__(self, path: str | Path, what: str) -> None:
        super().__init__(f"{path} is {what}, where a regular file belongs", "remove it")


def open_plain(path: str | Path, flags: int = os.O_RDONLY, folder: int | None = None) -> int:
    """A descriptor of a regular file, below an open `folder` if one is given; raises `NotPlain` for anything else.

    What it is, is seen before it is opened: the first descriptor can do nothing but tell.
    """
    probe = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        mode = os.fstat(probe).st_mode
        if not stat.S_ISREG(mode):
            raise NotPlain(path, KINDS.get(stat.S_IFMT(mode), "something else"))
        return os.open(f"/proc/self/fd/{probe}", flags | os.O_CLOEXEC)
    finally:
        os.close(probe)


def open_below(root: Path, path: str, uid: int, *, more_names: bool = False) -> int:
    """A descriptor of a regular file of that user below `root`, to read; no part of its path may be a link.

    Raises `NotPlain` for anything else, and `OSError` where a folder of the path is none. A file with more than one
    name may be somebody else's: it is refused, unless the caller takes `more_names`.
    """
    *folders, name = path.split("/")
    with folder_below(root, folders) as folder:
        descriptor = open_plain(name, folder=folder)
    found = os.fstat(descriptor)
    if found.st_uid == uid and (more_names or found.st_nlink == 1):
        return descriptor
    os.close(descriptor)
    theirs = found.st_uid != uid
    raise NotPlain(path, f"a file of user {found.st_uid}" if theirs else f"a file with {found.st_nlink} names")


@contextmanager
def folder_below(root: Path, names: Sequence[str]) -> Iterator[int]:
    """The folder below `root`, open; raises `OSError` where a part of its path is a link."""
    descriptor = os.open(root, FOLDER)
    try:
        for name in names:
            below = os.open(name, FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def read_end(root: Path, path: str, uid: int, since: int = 0) -> bytes:
    """Of what such a file holds beyond its first `since` bytes, at most the last MiB; raises as `open_below` does."""
    with open(open_below(root, path, uid), "rb") as file:
        file.seek(max(since, os.fstat(file.fileno()).st_size - LARGEST_BYTES))
        return file.read(LARGEST_BYTES)


def read_plain(path: Path) -> tuple[str, int]:
    """The text of a regular file, and whose it is; raises `NotPlain` for anything else, and for one that is too large.

    Raises `ValueError` for what is no UTF-8.
    """
    with open(open_plain(path), "rb") as file:
        found = os.fstat(file.fileno())
        content = file.read(LARGEST_BYTES + 1)
    if len(content) > LARGEST_BYTES:
        raise NotPlain(path, f"larger than {LARGEST_BYTES} bytes")
    return content.decode(), found.st_uid
