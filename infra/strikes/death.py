"""Death of a host: every process of it is killed, and none is left.

Handles on its processes are opened ahead, so that the kill takes effect at once. A pidfd names a process for good: a
process id that is used again is never hit.
"""

from __future__ import annotations

import os
import signal
import time

from infra.processes import MARK, carries, listening, members
from infra.strikes.strike import Proof, wait_until

PROOF_LIMIT_S, LOOK_EACH_S = 5.0, 0.002


class Death:
    """Implements `infra.strikes.strike.Strike` on the processes of a mark."""

    def __init__(self, mark: str, address: str, *, spared_ports: frozenset[int] = frozenset()) -> None:
        """Aim at the host of that mark; it listens on `address`, where the spared ports are not of its processes."""
        self.mark, self.address, self._spared = mark, address, spared_ports
        self.ports: set[int] = set()  # on which it was seen to listen before it was shot at
        self._open: dict[int, int] = {}
        self._fired_ns: int | None = None
        self.refresh()

    def refresh(self) -> bool:
        """Look again for processes of the host."""
        return bool(self.look())

    def look(self) -> list[int]:
        """Aim at every process of the host that there is; returns their ids."""
        found = members(self.mark)
        for pid in found:
            if pid not in self._open or self._ended(pid):
                self._aim_at(pid)
        if self._fired_ns is None:
            self.ports.update(self._listening())
        return found

    def _listening(self) -> set[int]:
        return set(listening(self.address)) - self._spared

    def _ended(self, pid: int) -> bool:
        """Whether the process aimed at has ended, and the id is another's now; closes the handle on it then."""
        try:
            signal.pidfd_send_signal(self._open[pid], 0)
        except ProcessLookupError:
            os.close(self._open.pop(pid))
            return True
        return False

    def _aim_at(self, pid: int) -> None:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        if carries(pid, f"{MARK}={self.mark}".encode()):
            self._open[pid] = handle
        else:
            os.close(handle)

    def shoot(self, due_ns: int = 0) -> None:
        """Kill the processes aimed at when it is due, without a look at what came of it."""
        self._fired_ns = wait_until(due_ns)
        self._signal(signal.SIGKILL)

    def fire(self, limit_s: float = PROOF_LIMIT_S) -> Proof:
        """Kill every process of the host, if it was not shot at yet, and prove it; stops looking after `limit_s`."""
        if self._fired_ns is None:
            self.shoot()
        deadline = time.monotonic() + limit_s
        while True:
            left, ports = self.look(), self._listening()
            if not (left or ports) or time.monotonic() > deadline:
                break
            self._signal(signal.SIGKILL)
            time.sleep(LOOK_EACH_S)
        done = {"processes killed": len(self._open)}
        proof = Proof(self._fired_ns, time.time_ns(), done, {"survivors": len(left), "open ports": len(ports)})
        self.close()
        return proof

    def _signal(self, number: signal.Signals) -> None:
        for handle in self._open.values():
            try:
                signal.pidfd_send_signal(handle, number)
            except ProcessLookupError:
                continue

    def close(self) -> None:
        for handle in self._open.values():
            os.close(handle)
        self._open.clear()
