"""Users of this machine: the owner of a process, and the name of a user."""

from __future__ import annotations

import pwd
from pathlib import Path

# What /proc answers about a process that has ended or may not be looked into. Any other error tells nothing about the
# process: if this process cannot open another file, say, all processes would look dead.
GONE_OR_HIDDEN = (FileNotFoundError, ProcessLookupError, PermissionError)


def user_of(pid: int) -> int | None:
    """The real user of a process; None when it is gone or hidden.

    The owner of /proc/PID would not do: a process that forbids to be looked into has files that belong to root.
    Raises `OSError` when this process has no descriptors or no memory left.

    A process chooses its name, which stands above its user. Of what ends a line of text, the kernel escapes only the
    line feed there, so nothing else may count as the end of a line.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except GONE_OR_HIDDEN:
        return None
    return next((int(line.split()[1]) for line in status.split(b"\n") if line.startswith(b"Uid:")), None)


def name_of(uid: int) -> str:
    """The name of a user, or the number of one that has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
