"""A kind of fault: a host whose processes can open nothing more, neither a file nor a connection."""

from __future__ import annotations

import resource
import time

from infra.process_handles import ProcessHandles
from infra.processes import members
from infra.strikes.strike import Proof, wait_until


class FilesUp:
    """Implements `infra.strikes.strike.Strike` on the processes of a mark: the limit of open files becomes 0.

    Files that are open stay open. Child processes that start later inherit the limit.
    """

    def __init__(self, mark: str) -> None:
        self.ports: set[int] = set()  # those that are open stay open
        self._processes = ProcessHandles(mark)
        self._fired_ns: int | None = None
        self.refresh()

    def refresh(self) -> bool:
        return bool(self._processes.scan())

    def shoot(self, due_ns: int = 0) -> None:
        self._fired_ns = wait_until(due_ns)
        for pid in self._processes.pids:
            _allow(pid, nothing=True)

    def fire(self) -> Proof:
        """Also limit the processes that have started since then. The proof is the limits that the kernel reports."""
        if self._fired_ns is None:
            self.shoot()
        while new := [pid for pid in self._processes.scan() if _limit(pid) not in (0, None)]:
            for pid in new:
                _allow(pid, nothing=True)
        limits = [_limit(pid) for pid in self._processes.pids]
        self.close()
        done, left = {"processes limited": limits.count(0)}, {"free": sum(limit not in (0, None) for limit in limits)}
        return Proof(self._fired_ns, time.time_ns(), done, left)

    def close(self) -> None:
        self._processes.close()


def let_open(mark: str) -> Proof:
    """Undo the fault: raise each limit as far as the process may have it, since the limit before is not known here."""
    fired_ns, limited = time.time_ns(), [pid for pid in members(mark) if _limit(pid) == 0]
    for pid in limited:
        _allow(pid, nothing=False)
    left = sum(_limit(pid) == 0 for pid in members(mark))
    return Proof(fired_ns, time.time_ns(), {"processes let open": len(limited)}, {"limited": left})


def _limit(pid: int) -> int | None:
    """How many files a process may have open; None for one that has ended."""
    try:
        return resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
    except ProcessLookupError:
        return None


def _allow(pid: int, nothing: bool) -> None:
    try:
        _, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (0 if nothing else most, most))
    except ProcessLookupError:
        return
