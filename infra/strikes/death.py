"""Death of a host: all its processes are killed, at once (`Death`) or after a grace period (`Termination`)."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from experiments.waiting import Deadline
from infra.process_handles import DYING_POLL_S, ProcessHandles
from infra.processes import listening
from infra.strikes.strike import NOT_YET, Proof, StrikeOnHost, closed_on_failure, wait_until

PROOF_LIMIT_S = 5.0
GRACE_S = 3.0  # between SIGTERM and SIGKILL; short enough that an abort need not interrupt it
# A look takes 20 ms of CPU time in real time. Proofs of eight hosts that look all the time leave the dying processes no
# CPU time to end.
POLL_S = 0.02


def _nothing() -> Mapping[str, int]:
    return {}


class Death(StrikeOnHost):
    """Kills the processes of a mark: SIGKILL."""

    def __init__(
        self,
        mark: str,
        address: str,
        *,
        spared_ports: frozenset[int] = frozenset(),
        own_ports: frozenset[int] | None = None,
        clear: Callable[[], Mapping[str, int]] = _nothing,
    ) -> None:
        """Prepare the death of the host whose processes carry `mark`.

        address       on which the host listens
        spared_ports  ports at that address that belong to the machine, not to the host
        own_ports     for a service that shares its host's address: the ports that it may listen on
        clear         removes what weaker faults left on the machine; returns counts of what could not be removed
        """
        self.address, self._spared, self._own, self._clear = address, spared_ports, own_ports, clear
        self.ports: set[int] = set()  # on which it was seen to listen before the strike
        self._processes = ProcessHandles(mark)
        self._fired_ns = NOT_YET
        with closed_on_failure(self):
            self.refresh()

    def refresh(self) -> bool:
        """Scan again; whether the host has any process."""
        return bool(self.scan())

    def scan(self) -> list[int]:
        """Open handles on all processes of the host, and note its open ports; returns the process ids."""
        found = self._processes.scan()
        if self._fired_ns == NOT_YET:
            self.ports.update(self._listening())
        return found

    def _listening(self) -> set[int]:
        found = set(listening(self.address)) - self._spared
        return found if self._own is None else found & self._own

    def shoot(self, due_ns: int = 0) -> None:
        """Kill the processes that have handles at `due_ns`; does not check the result."""
        self._fired_ns = wait_until(due_ns)
        self._processes.signal(signal.SIGKILL)

    def fire(self, limit_s: float = PROOF_LIMIT_S) -> Proof:
        """Kill all processes of the host until none is left, for at most `limit_s`; returns the proof."""
        if self._fired_ns == NOT_YET:
            self.shoot()
        deadline = Deadline(limit_s)
        with closed_on_failure(self):
            while True:
                self._processes.wait_for_their_end(min(deadline.left_s, DYING_POLL_S))
                survivors, ports = self.scan() or self.scan(), self._listening()  # one scan can miss a newborn process
                if not (survivors or ports) or deadline.passed:
                    break
                self._processes.signal(signal.SIGKILL)
                time.sleep(POLL_S)
            left = {"survivors": len(survivors) + sum(self._clear().values()), "open ports": len(ports)}
        done = {"processes killed": len(self._processes)}
        self.close()
        return Proof(self._fired_ns, time.time_ns(), done, left)

    def close(self) -> None:
        self._processes.close()


class Termination(Death):
    """SIGTERM, then SIGKILL to what survives the grace period. Stopped processes are continued so that they can end."""

    grace_s = GRACE_S

    def shoot(self, due_ns: int = 0) -> None:
        """Send SIGTERM to the processes that have handles at `due_ns`."""
        self._fired_ns = wait_until(due_ns)
        self._processes.signal(signal.SIGTERM)
        self._processes.signal(signal.SIGCONT)

    def fire(self, limit_s: float = PROOF_LIMIT_S) -> Proof:
        """Wait for the end of the processes or of the grace period, then kill; the proof counts both."""
        if self._fired_ns == NOT_YET:
            self.shoot()
        with closed_on_failure(self):
            ended = self._wait_for_their_end(told=self._processes.pids)
        proof = super().fire(limit_s)
        killed = proof.done["processes killed"] - ended
        return replace(proof, done={"processes ended": ended, "processes killed": killed})

    def _wait_for_their_end(self, told: set[int]) -> int:
        """Also send SIGTERM to processes that are born meanwhile; returns how many processes have ended."""
        deadline = Deadline(self.grace_s)
        self._clear()
        while True:
            found = self.scan()
            new = set(found) - told
            told |= new
            self._processes.signal(signal.SIGTERM, new)
            self._processes.signal(signal.SIGCONT)
            if not (found or self.scan()) or deadline.passed:  # a single scan can miss a newborn process
                return len(self._processes) - len(found)
            self._processes.wait_for_their_end(min(deadline.left_s, DYING_POLL_S))
