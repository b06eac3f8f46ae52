"""A slow host: its processes are stopped for a share of each period.

That is the doing of a throttler, a process of the machine: `python -m infra.strikes.throttle SHARE` is told a mark by
the first line of its input (other users may read arguments), waits for a second line, then stops and continues the
processes of the mark by turns until it is killed; it needs no cgroup and no right but over those processes. Kills of
the host spare it, those who kill the host end it, and so does the end of the cluster. A throttler that dies by itself
may leave the host stopped; it continues when the fault is undone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from experiments.waiting import Deadline
from infra import launch
from infra.process_handles import ProcessHandles
from infra.processes import ROOT, is_stopped, members, take_precedence, thread_times
from infra.strikes.strike import NOT_YET, Proof, StrikeOnHost, wait_until

PERIOD_S = 0.1
RESCAN_AFTER_S = 1.0
PROOF_LIMIT_S, END_LIMIT_S = 5.0, 1.0
OBSERVE_S, POLL_S = 1.0, 0.0073  # ten periods, and looks at another point of each
TOLERANCE = 0.05


class Throttle(StrikeOnHost):
    """Slows the processes of a mark down, by a throttler of another mark."""

    def __init__(self, mark: str, *, throttler: str, share: float) -> None:
        """Start the throttler, which waits; `share` is that of the time in which each process may run."""
        self.mark, self.share, self._throttler_mark = mark, share, throttler
        self.ports: set[int] = set()  # they stay open
        self._throttler = self._start()
        self._fired_ns = NOT_YET
        self._done: dict[str, int] = {}

    def _start(self) -> subprocess.Popen[bytes]:
        throttler = subprocess.Popen(
            [sys.executable, "-S", "-m", "infra.strikes.throttle", str(self.share)],
            env=launch.environment(self._throttler_mark, os.environ.get(ROOT, "")),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        told = _input_of(throttler)
        told.write(f"{self.mark}\n".encode())
        told.flush()
        return throttler

    def refresh(self) -> bool:
        """Whether the host is up; a throttler that the end of an earlier fault took along is started again."""
        if self._throttler.poll() is not None:
            self._throttler = self._start()
        return bool(members(self.mark))

    def shoot(self, due_ns: int = 0) -> None:
        self._fired_ns = wait_until(due_ns)
        self._begin()

    def _begin(self) -> None:
        """Let the throttler begin."""
        with suppress(BrokenPipeError, ValueError):  # it was killed meanwhile
            told = _input_of(self._throttler)
            told.write(b"begin\n")
            told.close()

    def fire(self) -> Proof:
        """Look on for a second, again until what is seen is what it should be.

        No thread may have had more CPU time than the share of the time passed, by the kernel's account, and no process
        may have gone without a stop. Allowed are .05 more: a window of ten periods that begins anywhere holds up to a
        quarter of a turn too much (.025), and times come in ticks of .01 s, two to a thread (.02).
        """
        if self._fired_ns == NOT_YET:
            self.shoot()
        deadline = Deadline(PROOF_LIMIT_S)
        self._begin_again_if_lost()
        while any((left := self._look_on()).values()) and not deadline.passed:
            self._begin_again_if_lost()
        return Proof(self._fired_ns, time.time_ns(), self._done, left)

    def _begin_again_if_lost(self) -> None:
        """The heal of an earlier fault may have taken the throttler along; if a stronger fault has, the host stands."""
        if self._throttler.poll() is not None and not all(is_stopped(pid) for pid in members(self.mark)):
            self._throttler = self._start()
            self._begin()

    def _look_on(self) -> dict[str, int]:
        seen = observe(self.mark)
        above = sum(share > self.share + TOLERANCE for share in seen.cpu_shares.values())
        never_stopped = len(seen.cpu_shares.keys() - seen.stopped)
        busiest = max(seen.cpu_shares.values(), default=0.0)
        self._done = {"processes slowed": len(seen.cpu_shares), "busiest thread in %": round(100 * busiest)}
        return {"above share": above, "never stopped": never_stopped}

    def close(self) -> None:
        """End the throttler, unless it was let begin."""
        if self._fired_ns == NOT_YET:
            self._throttler.kill()
            self._throttler.wait()
            _input_of(self._throttler).close()


@dataclass(frozen=True)
class Observed:
    """What the processes of a mark, of those that lived all the while, did: CPU time of their busiest threads over time
    passed, by process id, and which were seen stopped."""

    cpu_shares: dict[int, float]
    stopped: set[int]


def observe(mark: str, over_s: float = OBSERVE_S) -> Observed:
    """Look on from outside for so long."""
    began = time.monotonic()
    before = {pid: thread_times(pid) for pid in members(mark)}
    stopped: set[int] = set()
    for number in range(1, round(over_s / POLL_S) + 1):
        stopped.update(pid for pid in before.keys() - stopped if is_stopped(pid))
        time.sleep(max(0.0, began + number * POLL_S - time.monotonic()))
    passed_s, shares = time.monotonic() - began, {}
    for pid, times in before.items():
        after = thread_times(pid)
        if ran := [after[thread] - times[thread] for thread in after.keys() & times.keys()]:
            shares[pid] = max(ran) / passed_s
    return Observed(shares, stopped & shares.keys())


def end_throttlers(throttler: str) -> int:
    """Kill the throttlers of that mark; returns how many are left, which none should be."""
    handles = ProcessHandles(throttler)
    try:
        return len(handles.kill(END_LIMIT_S))
    finally:
        handles.close()


def _input_of(throttler: subprocess.Popen[bytes]) -> IO[bytes]:
    """The pipe to its input; raises `ValueError` for one that was started without it."""
    if throttler.stdin is None:
        raise ValueError("a throttler without a pipe to its input")
    return throttler.stdin


class ThrottledProcesses:
    """The processes of a mark, for frequent scans: a process that is no member is not checked each time."""

    def __init__(self, mark: str) -> None:
        self._handles = ProcessHandles(mark)
        self._known: set[str] = set()
        self._scanned_s = time.monotonic()

    def take_in(self) -> None:
        """Open handles on new processes; every `RESCAN_AFTER_S` check all, because an exec can make one a member."""
        now = time.monotonic()
        if now > self._scanned_s + RESCAN_AFTER_S:
            self._known, self._scanned_s = set(), now
            self._handles.forget_the_ended()
        there = set(filter(str.isdigit, os.listdir("/proc")))
        for name in there - self._known:
            self._handles.add(int(name))
        self._known = there

    def stop(self) -> None:
        """Stop them, then those that were born meanwhile."""
        self._handles.signal(signal.SIGSTOP)
        self.take_in()
        self._handles.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue all processes that have handles."""
        self._handles.signal(signal.SIGCONT)


def throttle(mark: str, share: float) -> None:
    """Stop and continue the processes of a mark by turns, for good.

    They stand still in proportion to how long they just ran, so a turn that came late costs them as much.
    """
    throttled = ThrottledProcesses(mark)
    ran_s = share * PERIOD_S
    while True:
        throttled.stop()
        time.sleep(ran_s * (1 - share) / share)
        began = time.monotonic()
        throttled.go_on()
        time.sleep(share * PERIOD_S)
        ran_s = time.monotonic() - began


def main() -> None:
    """Throttle the processes of a mark for good: `throttle.py SHARE`.

    The first line of its input is the mark. The throttling begins when the second line comes.
    """
    mark, share = sys.stdin.readline().rstrip(), float(sys.argv[1])
    take_precedence()
    if sys.stdin.readline():
        throttle(mark, share)


if __name__ == "__main__":
    main()
