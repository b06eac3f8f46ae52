"""A host that stands still: every process of it is stopped, and goes on when it is thawed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping

from infra.process_handles import Handles
from infra.processes import is_stopped, stands_still
from infra.strikes.strike import Proof, wait_until

PROOF_LIMIT_S, LOOK_EACH_S = 5.0, 0.002


class Freeze:
    """Implements `infra.strikes.strike.Strike` on the processes of a mark: SIGSTOP."""

    def __init__(self, mark: str, *, throttler: str, clear: Callable[[], Mapping[str, int]]) -> None:
        """Aim at the host of that mark, and at the `throttler` of that mark, which would thaw it again.

        `clear` removes what else made the host slow, too, and tells what of that is left.
        """
        self.ports: set[int] = set()  # they stay open
        self._processes, self._throttler, self._clear = Handles(mark), Handles(throttler), clear
        self._fired_ns: int | None = None
        self.refresh()

    def refresh(self) -> bool:
        self._throttler.look()
        return bool(self._processes.look())

    def shoot(self, due_ns: int = 0) -> None:
        """Stop the processes aimed at when it is due."""
        self._fired_ns = wait_until(due_ns)
        self._throttler.signal(signal.SIGKILL)
        self._processes.signal(signal.SIGSTOP)

    def fire(self, limit_s: float = PROOF_LIMIT_S) -> Proof:
        """Stop what there is until all of it stands still and none was born since.

        What is seen after all that was seen before stood still was born before that; so a look that finds nothing new
        then ends it.
        """
        if self._fired_ns is None:
            self.shoot()
        deadline = time.monotonic() + limit_s
        uncleared = sum(self._clear().values())
        still: set[int] = set()
        while not still.issuperset(found := self._processes.look()) and time.monotonic() < deadline:
            self._processes.signal(signal.SIGSTOP)
            time.sleep(LOOK_EACH_S)
            still = {pid for pid in found if stands_still(pid)}
        running = sum(not stands_still(pid) for pid in found)
        self.close()
        left = {"running": running + uncleared}
        return Proof(self._fired_ns, time.time_ns(), {"processes frozen": len(found) - running}, left)

    def close(self) -> None:
        self._processes.close()
        self._throttler.close()


def thaw(mark: str, *, limit_s: float = PROOF_LIMIT_S) -> Proof:
    """Let the host of that mark go on, and prove it: `frozen` are the processes that were not seen to.

    One look at each is enough: what stops it again after that is another fault's doing.
    """
    fired_ns = time.time_ns()
    deadline = time.monotonic() + limit_s
    processes, going = Handles(mark), set()
    were_frozen = sum(is_stopped(pid) is True for pid in processes.look())
    while (frozen := set(processes.look()) - going) and time.monotonic() < deadline:
        processes.signal(signal.SIGCONT, frozen)
        going.update(pid for pid in frozen if not is_stopped(pid))
    processes.close()
    return Proof(fired_ns, time.time_ns(), {"processes thawed": were_frozen}, {"frozen": len(frozen)})
