"""Opens files that other users may have created: only regular files, without following links or waiting.

A FIFO would make the reader wait for ever, a link would lead it elsewhere, and some devices act when they are opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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


class RefusedFile(EnvironmentFailure):
    """What has the name of a file is something else, `what`."""

    def __init__(self, path: str | Path, what: str) -> None:
        super().__init__(f"{path} is {what}, where a regular file belongs", "remove it")
        self.what = what


class TooLarge(RefusedFile):
    """A file is larger than its reader takes."""

    def __init__(self, path: str | Path, most_bytes: int) -> None:
        super().__init__(path, f"larger than {most_bytes} bytes")


def open_plain(
    path: str | Path, flags: int = os.O_RDONLY, folder: int | None = None, *, links: bool = False, pipes: bool = False
) -> int:
    """A descriptor of a regular file, below an open `folder` if one is given; raises `RefusedFile` for anything else.

    What it is, is seen before it is opened: the first descriptor can do nothing but tell. Only who reads what its own
    user names follows `links`, and takes `pipes`; opening a pipe never waits, and reading from it does.
    """
    follow = 0 if links else os.O_NOFOLLOW
    probe = os.open(path, os.O_PATH | follow | os.O_CLOEXEC, dir_fd=folder)
    try:
        kind = stat.S_IFMT(os.fstat(probe).st_mode)
        if kind == stat.S_IFREG:
            return _reopened(probe, flags, path)
        if not (pipes and kind == stat.S_IFIFO):
            raise RefusedFile(path, KINDS.get(kind, "something else"))
        pipe = _reopened(probe, flags | os.O_NONBLOCK, path)
        os.set_blocking(pipe, True)
        return pipe
    finally:
        os.close(probe)


def _reopened(probe: int, flags: int, path: str | Path) -> int:
    try:
        return os.open(f"/proc/self/fd/{probe}", flags | os.O_CLOEXEC)
    except OSError as error:
        error.filename = str(path)
        raise


def open_below(root: Path, path: str, uid: int | None, *, more_names: bool = False) -> int:
    """A descriptor of a regular file of that user below `root`, to read; no part of its path may be a link.

    Without `uid` it may be any user's. Raises `RefusedFile` for anything else, and `OSError` where a folder of the path
    is none. A file with more than one name may be somebody else's: it is refused, unless the caller takes `more_names`.
    """
    *folders, name = path.split("/")
    with folder_below(root, folders) as folder:
        descriptor = open_plain(name, folder=folder)
    found = os.fstat(descriptor)
    theirs = uid is not None and found.st_uid != uid
    if not theirs and (more_names or found.st_nlink == 1):
        return descriptor
    os.close(descriptor)
    raise RefusedFile(path, f"a file of user {found.st_uid}" if theirs else f"a file with {found.st_nlink} names")


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
    """At most the last MiB of such a file, without its first `since` bytes; raises as `open_below` does."""
    with open(open_below(root, path, uid), "rb") as file:
        file.seek(max(since, os.fstat(file.fileno()).st_size - LARGEST_BYTES))
        return file.read(LARGEST_BYTES)


def read_plain(path: Path) -> tuple[str, int]:
    """The text of a regular file, and whose it is; raises as `read_whole` does, and `ValueError` for no UTF-8."""
    with open(open_plain(path), "rb") as file:
        return _limited(file, path, LARGEST_BYTES).decode(), os.fstat(file.fileno()).st_uid


def read_whole(path: Path, most_bytes: int | None, *, links: bool = False, pipes: bool = False) -> bytes:
    """All that a file holds; raises as `open_plain` does, and `TooLarge` for more than `most_bytes`."""
    with open(open_plain(path, links=links, pipes=pipes), "rb") as file:
        return file.read() if most_bytes is None else _limited(file, path, most_bytes)


def _limited(file: BinaryIO, path: Path, most_bytes: int) -> bytes:
    """A file that is too large is not read at all; one that grows, and a pipe, not beyond the limit."""
    if os.fstat(file.fileno()).st_size <= most_bytes:
        content = file.read(most_bytes + 1)
        if len(content) <= most_bytes:
            return content
    raise TooLarge(path, most_bytes)
