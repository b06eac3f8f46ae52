"""What a run keeps of its hosts' folders: regular files of the run's user, and nothing that they only lead to.

What runs on a host may put anything into its folder. Links are not followed, on no part of a path; a file with a second
name may be somebody else's; a FIFO would never end.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from experiments.errors import EnvironmentFailure
from experiments.wording import on_one_line
from infra.plain_files import folder_below, open_below


def gather_logs(root: Path, target: Path) -> list[str]:
    """Copy `hosts/*/logs/*.log` of a cluster's root to `target`/HOST; returns what was left out, each with its reason.

    They must belong to the owner of the root.
    """
    uid, problems = root.lstat().st_uid, []
    for host in _listed(root, ["hosts"], problems):
        folders = ["hosts", host, "logs"]
        for name in _listed(root, folders, problems):
            if name.endswith(".log"):
                path = "/".join([*folders, name])
                with _noting(path, problems):
                    copy_plain(root, path, target / host / name, uid)
    return problems


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


def copy_plain(root: Path, path: str, target: Path, uid: int) -> None:
    """Copy a file of that user below `root`; raises `NotPlain` for what is none, or is reached by a link."""
    with open(open_below(root, path, uid), "rb") as source:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as copy:
            shutil.copyfileobj(source, copy)
