"""Handles on the processes of a mark, opened ahead of a strike.

A pidfd names a process for good: a process id that is used again is never hit.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Collection

from infra.processes import MARK, carries, members


class Handles:
    """The processes that carry a mark, or one below it, as far as they were seen; whoever makes it closes it."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self._open: dict[int, int] = {}

    def __len__(self) -> int:
        """How many processes were aimed at, whether they live or not."""
        return len(self._open)

    @property
    def pids(self) -> set[int]:
        return set(self._open)

    def find(self) -> list[int]:
        """Ids of the processes that there are."""
        return members(self.mark)

    def belongs(self, pid: int) -> bool:
        return carries(pid, f"{MARK}={self.mark}".encode())

    def look(self) -> list[int]:
        """Aim at every process that there is; returns their ids."""
        found = self.find()
        for pid in found:
            self.aim_at(pid)
        return found

    def aim_at(self, pid: int) -> bool:
        """Aim at a process if it belongs to them."""
        if pid in self._open and not self._ended(pid):
            return True
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        if self.belongs(pid):
            self._open[pid] = handle
        else:
            os.close(handle)
        return pid in self._open

    def _ended(self, pid: int) -> bool:
        """Whether the process aimed at has ended, and the id is another's now; closes the handle on it then."""
        try:
            signal.pidfd_send_signal(self._open[pid], 0)
        except ProcessLookupError:
            os.close(self._open.pop(pid))
            return True
        return False

    def forget_the_ended(self) -> None:
        """Close the handles on processes that have ended."""
        for pid in list(self._open):
            self._ended(pid)

    def signal(self, number: signal.Signals, only: Collection[int] | None = None) -> None:
        """Send a signal to all processes aimed at, or to these."""
        for pid, handle in self._open.items():
            if only is None or pid in only:
                try:
                    signal.pidfd_send_signal(handle, number)
                except ProcessLookupError:
                    continue

    def wait_for_their_end(self, within_s: float) -> None:
        """Return when all processes aimed at have ended, or that time [s] is over."""
        waiting = set(self._open.values())
        deadline = time.monotonic() + within_s
        while waiting and (left_s := deadline - time.monotonic()) > 0:
            poll = select.poll()
            for handle in waiting:
                poll.register(handle, select.POLLIN)
            waiting.difference_update(handle for handle, _ in poll.poll(left_s * 1000))

    def close(self) -> None:
        for handle in self._open.values():
            os.close(handle)
        self._open.clear()
