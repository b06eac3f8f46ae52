"""Handles on the processes of a mark, opened before a strike.

A pidfd always refers to the same process. So a signal never reaches another process that got the same id later.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Collection
from contextlib import suppress

from experiments.errors import EnvironmentFailure
from experiments.waiting import Deadline
from infra.processes import MARK, carries, members

DYING_POLL_S = 0.25  # between two looks for processes that were born meanwhile
# What a signal to a process raises that has ended, or that has become another user's (as `sudo` does): it is no member.
NO_MORE = (ProcessLookupError, PermissionError)


class ProcessHandles:
    """Open pidfds on the processes that carry a mark, or a mark below it. The caller closes them."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self._open: dict[int, int] = {}

    def __len__(self) -> int:
        """How many processes have a handle, including those that have ended."""
        return len(self._open)

    @property
    def pids(self) -> set[int]:
        """The ids of the processes that have a handle."""
        return set(self._open)

    def find(self) -> list[int]:
        """The ids of all processes that carry the mark now."""
        return members(self.mark)

    def belongs(self, pid: int) -> bool:
        """Whether a process carries the mark."""
        return carries(pid, f"{MARK}={self.mark}".encode())

    def scan(self) -> list[int]:
        """Open handles on all processes that carry the mark now; returns their ids."""
        found = self.find()
        for pid in found:
            self.add(pid)
        return found

    def add(self, pid: int) -> bool:
        """Open a handle on a process if it carries the mark; returns whether it does."""
        if pid in self._open and not self._ended(pid):
            return True
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        belongs = False
        try:
            belongs = self.belongs(pid)
        finally:  # also if that raises
            if belongs:
                self._open[pid] = handle
            else:
                os.close(handle)
        return belongs

    def _ended(self, pid: int) -> bool:
        """Whether a process has ended, so that its id may belong to another; closes its handle if so."""
        try:
            signal.pidfd_send_signal(self._open[pid], 0)
        except NO_MORE:
            os.close(self._open.pop(pid))
            return True
        return False

    def forget_the_ended(self) -> None:
        """Close the handles of processes that have ended."""
        for pid in list(self._open):
            self._ended(pid)

    def signal(self, number: signal.Signals, only: Collection[int] | None = None) -> None:
        """Send a signal to all processes that have a handle, or to those of `only`."""
        for pid, handle in self._open.items():
            if only is None or pid in only:
                with suppress(*NO_MORE):
                    signal.pidfd_send_signal(handle, number)

    def kill(self, limit_s: float) -> list[int]:
        """Kill all processes of the mark, also those that are born meanwhile, until none is left.

        Returns the ids of those that are left after `limit_s` [s].
        """
        deadline = Deadline(limit_s)
        while (found := self.scan() or self.scan()) and not deadline.passed:  # one scan can miss a newborn process
            self.signal(signal.SIGKILL)
            self.wait_for_their_end(min(deadline.left_s, DYING_POLL_S))
        return found

    def wait_for_their_end(self, within_s: float) -> None:
        """Wait until all processes that have a handle have ended, for at most `within_s`."""
        waiting = set(self._open.values())
        deadline = Deadline(within_s)
        while waiting and (left_s := deadline.left_s) > 0:
            poll = select.poll()
            for handle in waiting:
                poll.register(handle, select.POLLIN)
            waiting.difference_update(handle for handle, _ in poll.poll(left_s * 1000))

    def close(self) -> None:
        """Close all handles; there is none afterwards."""
        for handle in self._open.values():
            os.close(handle)
        self._open.clear()


def kill_all(processes: ProcessHandles, limit_s: float = 5.0) -> None:
    """Kill all processes of a mark and close the handles. Raises `EnvironmentFailure` for what does not die in time."""
    try:
        left = processes.kill(limit_s)
    finally:
        processes.close()
    if left:
        numbers = ", ".join(map(str, left))
        whose = processes.mark.partition("/")[2] or processes.mark  # without the token, which nobody is told
        raise EnvironmentFailure(f"processes {numbers} of {whose} survive SIGKILL", "look for them with ps")
