"""A paused host: all its processes are stopped with SIGSTOP, until they are thawed with SIGCONT."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping

from experiments.waiting import Deadline
from infra.process_handles import ProcessHandles
from infra.processes import is_stopped, stands_still
from infra.strikes.strike import NOT_YET, Proof, StrikeOnHost, closed_on_failure, wait_until

PROOF_LIMIT_S = 5.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.002, 0.1  # a proof in real time leaves the processes some CPU time, to stop


class Freeze(StrikeOnHost):
    """Stops the processes of a mark: SIGSTOP."""

    def __init__(self, mark: str, *, throttler: str, clear: Callable[[], Mapping[str, int]]) -> None:
        """Prepare the pause of the host whose processes carry `mark`.

        throttler  mark of the host's throttler, which is killed because it would continue the processes
        clear      removes what else slows the host; returns counts of what could not be removed
        """
        self.ports: set[int] = set()  # they stay open
        self._processes, self._throttler, self._clear = ProcessHandles(mark), ProcessHandles(throttler), clear
        self._fired_ns = NOT_YET
        with closed_on_failure(self):
            self.refresh()

    def refresh(self) -> bool:
        self._throttler.scan()
        return bool(self._processes.scan())

    def shoot(self, due_ns: int = 0) -> None:
        """Stop the processes that have handles at `due_ns`."""
        self._fired_ns = wait_until(due_ns)
        self._throttler.signal(signal.SIGKILL)
        self._processes.signal(signal.SIGSTOP)

    def fire(self, limit_s: float = PROOF_LIMIT_S) -> Proof:
        """Stop processes until all stand still and no new one appears, for at most `limit_s`; returns the proof.

        A stopped process starts no other. So once all known processes stand still, a scan that finds no new process
        proves that there is none.
        """
        if self._fired_ns == NOT_YET:
            self.shoot()
        deadline = Deadline(limit_s)
        with closed_on_failure(self):
            uncleared = sum(self._clear().values())
            still: set[int] = set()
            pause_s = FIRST_PAUSE_S
            while not still.issuperset(found := self._processes.scan()) and not deadline.passed:
                self._processes.signal(signal.SIGSTOP)
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                still = {pid for pid in found if stands_still(pid)}
            running = sum(not stands_still(pid) for pid in found)
        self.close()
        left = {"running": running + uncleared}
        return Proof(self._fired_ns, time.time_ns(), {"processes frozen": len(found) - running}, left)

    def close(self) -> None:
        self._processes.close()
        self._throttler.close()


def thaw(mark: str) -> Proof:
    """Continue the processes of the host, and prove it; the proof's `frozen` counts those that stay stopped.

    Each process is checked once: if it is stopped again after that, another fault did it.
    """
    fired_ns = time.time_ns()
    deadline = Deadline(PROOF_LIMIT_S)
    processes, going = ProcessHandles(mark), set[int]()
    try:
        were_frozen = sum(is_stopped(pid) is True for pid in processes.scan())
        while (frozen := set(processes.scan()) - going) and not deadline.passed:
            processes.signal(signal.SIGCONT, frozen)
            going.update(pid for pid in frozen if not is_stopped(pid))
    finally:
        processes.close()
    return Proof(fired_ns, time.time_ns(), {"processes thawed": were_frozen}, {"frozen": len(frozen)})
