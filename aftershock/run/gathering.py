"""Collects the files that a run keeps from its hosts' folders: only regular files of the run's user.

What runs on a host may put anything into its folder. Links are not followed, on no part of a path; a file with a second
name may be somebody else's; a FIFO would never end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from experiments.documents.plain_files import KINDS, folder_below, open_below
from experiments.errors import EnvironmentFailure
from experiments.wording import on_one_line

LARGEST_BYTES = 64 * 2**20  # kept of a log: its end
MOST_BYTES = 2**30  # kept of all logs of a run
PIECE_BYTES = 2**20


def gather_logs(root: Path, target: Path) -> list[str]:
    """Copy `hosts/*/logs/*.log` of a cluster's root to `target`/HOST; returns what was left out, each with its reason.

    They must belong to the owner of the root. If a log is too large, only its end is copied. If all logs together are
    too large, only the first ones are copied.
    """
    problems: list[str] = []
    uid, left = root.lstat().st_uid, MOST_BYTES
    for path in _logs(root, problems):
        _, host, _, name = path.split("/")
        most = min(left, LARGEST_BYTES)
        if not most:
            problems.append(on_one_line(f"{path}: the logs of the run's hosts have more than {MOST_BYTES} bytes"))
            continue
        with _noting(path, problems):
            size = copy_plain(root, path, target / host / name, uid, most)
            left -= min(size, most)
            if size > most:
                problems.append(on_one_line(f"{path}: only its last {most} bytes are kept"))
    return problems


def remove_strange(raw: Path) -> list[str]:
    """Remove everything that is not a regular file from the raw logs of a run; returns what that was.

    Hosts write some of these logs themselves. A program that copies or reads the run would follow a link, and would
    wait for ever at a FIFO.
    """
    found = []
    for folder, folders, names in os.walk(raw):
        for path in (Path(folder, name) for name in [*folders, *names]):
            kind = stat.S_IFMT(path.lstat().st_mode)
            if kind not in (stat.S_IFREG, stat.S_IFDIR):
                path.unlink()
                found.append(on_one_line(f"raw/{path.relative_to(raw)}: it was {KINDS.get(kind, 'no file')}"))
    return found


def _logs(root: Path, problems: list[str]) -> Iterator[str]:
    for host in _listed(root, ["hosts"], problems):
        folders = ["hosts", host, "logs"]
        names = _listed(root, folders, problems)
        yield from ("/".join([*folders, name]) for name in names if name.endswith(".log"))


def _listed(root: Path, folders: list[str], problems: list[str]) -> list[str]:
    """What is in a folder below `root`; nothing of one that is missing, or a link, which is noted."""
    with _noting("/".join(folders), problems), suppress(FileNotFoundError), folder_below(root, folders) as folder:
        return sorted(os.listdir(folder))
    return []


@contextmanager
def _noting(path: str, problems: list[str]) -> Iterator[None]:
    """Note what cannot be kept, with the reason, and go on."""
    try:
        yield
    except EnvironmentFailure as error:
        problems.append(on_one_line(f"{path}: {error.cause}"))
    except OSError as error:
        problems.append(on_one_line(f"{path}: {error.strerror}"))


def copy_plain(root: Path, path: str, target: Path, uid: int, most: int) -> int:
    """Copy a file of that user below `root`, its last `most` bytes; returns how many it has.

    Raises `RefusedFile` for what is none, or is reached by a link.
    """
    with open(open_below(root, path, uid), "rb") as source:
        size = os.fstat(source.fileno()).st_size
        rest = min(size, most)  # it may grow meanwhile
        source.seek(size - rest)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as copy:
            while rest and (piece := source.read(min(rest, PIECE_BYTES))):
                copy.write(piece)
                rest -= len(piece)
    return size
