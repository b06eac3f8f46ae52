"""Death of a host: every process of it is killed, at once or after it was asked to end, and none is left."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from infra.process_handles import Handles
from infra.processes import listening
from infra.strikes.strike import Proof, wait_until

PROOF_LIMIT_S, LOOK_EACH_S = 5.0, 0.002
GRACE_S = 3.0  # between SIGTERM and SIGKILL; short enough that an abort need not interrupt it
LOOK_IN_GRACE_S = 0.25


def _nothing() -> Mapping[str, int]:
    return {}


class Death:
    """Implements `infra.strikes.strike.Strike` on the processes of a mark: SIGKILL."""

    def __init__(
        self,
        mark: str,
        address: str,
        *,
        spared_ports: frozenset[int] = frozenset(),
        own_ports: frozenset[int] | None = None,
        clear: Callable[[], Mapping[str, int]] = _nothing,
    ) -> None:
        """Aim at the host of that mark; it listens on `address`, where the spared ports are not of its processes.

        Of a service that shares its host's address, `own_ports` are those that it may listen on. `clear` removes what
        weaker faults left on the host's machine, so that it does not come back with it, and tells what of that is left.
        """
        self.address, self._spared, self._own, self._clear = address, spared_ports, own_ports, clear
        self.ports: set[int] = set()  # on which it was seen to listen before it was shot at
        self._processes = Handles(mark)
        self._fired_ns: int | None = None
        self.refresh()

    def refresh(self) -> bool:
        """Look again for processes of the host."""
        return bool(self.look())

    def look(self) -> list[int]:
        """Aim at every process of the host that there is; returns their ids."""
        found = self._processes.look()
        if self._fired_ns is None:
            self.ports.update(self._listening())
        return found

    def _listening(self) -> set[int]:
        found = set(listening(self.address)) - self._spared
        return found if self._own is None else found & self._own

    def shoot(self, due_ns: int = 0) -> None:
        """Kill the processes aimed at when it is due, without a look at what came of it."""
        self._fired_ns = wait_until(due_ns)
        self._processes.signal(signal.SIGKILL)

    def fire(self, limit_s: float = PROOF_LIMIT_S) -> Proof:
        """Kill every process of the host, if it was not shot at yet, and prove it; stops looking after `limit_s`."""
        if self._fired_ns is None:
            self.shoot()
        deadline = time.monotonic() + limit_s
        while True:
            survivors, ports = self.look(), self._listening()
            if not (survivors or ports) or time.monotonic() > deadline:
                break
            self._processes.signal(signal.SIGKILL)
            time.sleep(LOOK_EACH_S)
        done = {"processes killed": len(self._processes)}
        left = {"survivors": len(survivors) + sum(self._clear().values()), "open ports": len(ports)}
        self.close()
        return Proof(self._fired_ns, time.time_ns(), done, left)

    def close(self) -> None:
        self._processes.close()


class Termination(Death):
    """SIGTERM; SIGKILL to what has not ended after a grace period. A process that was stopped goes on, to end."""

    grace_s = GRACE_S

    def shoot(self, due_ns: int = 0) -> None:
        """Ask the processes aimed at to end when it is due."""
        self._fired_ns = wait_until(due_ns)
        self._processes.signal(signal.SIGTERM)
        self._processes.signal(signal.SIGCONT)

    def fire(self, limit_s: float = PROOF_LIMIT_S) -> Proof:
        """Wait until all have ended or the grace period is over, then kill; tells how many of each there were."""
        if self._fired_ns is None:
            self.shoot()
        ended = self._wait_for_their_end(told=self._processes.pids)
        proof = super().fire(limit_s)
        killed = proof.done["processes killed"] - ended
        return replace(proof, done={"processes ended": ended, "processes killed": killed})

    def _wait_for_their_end(self, told: set[int]) -> int:
        """Tell those that are born meanwhile, too; returns how many have ended."""
        deadline = time.monotonic() + self.grace_s
        self._clear()
        while True:
            found = self.look()
            new = set(found) - told
            told |= new
            self._processes.signal(signal.SIGTERM, new)
            self._processes.signal(signal.SIGCONT)
            left_s = deadline - time.monotonic()
            if not (found or self.look()) or left_s <= 0:  # who is born while the last one ends may escape one look
                return len(self._processes) - len(found)
            self._processes.wait_for_their_end(min(left_s, LOOK_IN_GRACE_S))
