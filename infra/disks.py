"""Separate disks for hosts that share a machine: a tmpfs each, on the host's work folder. Needs root.

The source of such a mount carries the label of its cluster and the name of its host, so that it is found without a
handle. Its files are in memory; a disk that is hardly used costs hardly any.
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

from experiments.errors import EnvironmentFailure
from experiments.waiting import Deadline
from infra import programs, tokens
from infra.mounted import mounted

SOURCE = re.compile(rf"aftershock-({tokens.PATTERN})-.+")
COMMAND_LIMIT_S, REMOVAL_LIMIT_S, PAUSE_S = 30.0, 5.0, 0.05


def create(token: str, host: str, folder: Path, size_mb: int) -> None:
    """Give a host an empty disk of that size [MiB] on a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={size_mb}m,mode=0755,nosuid,nodev"
    source = f"aftershock-{tokens.label(token)}-{host}"
    if reason := _failure("mount", "-t", "tmpfs", "-o", options, source, str(folder)):
        raise EnvironmentFailure(f"no disk could be mounted on {folder} ({reason})", "see `mount`")


def empty(folder: Path) -> None:
    """Make a disk as it was when it was new."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def mounts() -> list[tuple[str, Path]]:
    """Label and folder of every disk on this machine."""
    found = ((SOURCE.fullmatch(each.source), each.folder) for each in mounted() if each.kind == "tmpfs")
    return [(match[1], folder) for match, folder in found if match]


def of(label: str) -> list[Path]:
    """The folders of the disks of a cluster."""
    return [folder for owner, folder in mounts() if owner == label]


def remove(label: str) -> None:
    """Unmount the disks of a cluster whose processes have ended, and prove it.

    Idempotent. Raises `EnvironmentFailure` for a disk that somebody else's process keeps busy; all others are gone.
    """
    deadline = Deadline(REMOVAL_LIMIT_S)
    while left := of(label):
        failed = list(filter(None, [_failure("umount", str(folder)) for folder in left]))
        if failed and deadline.passed:
            raise EnvironmentFailure(
                f"disks cannot be unmounted ({'; '.join(failed)})", "see who uses them with `fuser -vm`"
            )
        if failed:
            time.sleep(PAUSE_S)


def _failure(*command: str) -> str:
    """Why a command failed; empty if it did not."""
    try:
        done = programs.run(*command, limit_s=COMMAND_LIMIT_S)
    except OSError as error:  # its program is missing, or does not end
        return f"{error.filename}: {error.strerror}"
    return (done.stderr.strip() or f"exit code {done.returncode}") if done.returncode else ""
