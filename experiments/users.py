"""Users of this machine: the owner of a process, and the name of a user."""

from __future__ import annotations

import pwd
from pathlib import Path


def user_of(pid: int) -> int | None:
    """The real user of a process; None when it is gone.

    The owner of /proc/PID would not do: a process that forbids to be looked into has files that belong to root.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return None
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("Uid:")), None)


def name_of(uid: int) -> str:
    """The name of a user, or the number of one that has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
