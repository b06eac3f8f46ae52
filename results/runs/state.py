"""The states of a run."""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    """The state of a run, in its status.json and in lists."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    UNREADABLE = "unreadable"  # its status or a table cannot be read
    UNREAD = "not read yet"  # in lists that were given no time to read more than its status
