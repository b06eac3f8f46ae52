"""Ctrl-C, a termination signal and a hang-up of the terminal end a command in the same way."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PR_SET_PDEATHSIG = 1  # of linux/prctl.h
_LIBC = ctypes.CDLL(None)


@contextmanager
def interrupting() -> Iterator[None]:
    """Every ending signal raises `KeyboardInterrupt` meanwhile, unless it is ignored already, as `nohup` has it."""
    with _handled(signal.default_int_handler):
        yield


@contextmanager
def ignored() -> Iterator[None]:
    """Ending signals do nothing meanwhile: a second Ctrl-C must not cut a clean-up short."""
    with _handled(signal.SIG_IGN):
        yield


@contextmanager
def _handled(handler: Any) -> Iterator[None]:
    heeded = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heeded}
    try:
        yield
    finally:
        for number, handled in before.items():
            signal.signal(number, handled)


def end_with_parent() -> None:
    """To be called in a child before its program: it gets SIGTERM once its parent has died, be it by SIGKILL."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def status_of(child: subprocess.Popen[bytes]) -> int | None:
    """How a child has ended, as its `returncode` says it; None while it runs.

    Unlike `poll`, this does not reap the child: until it is reaped, the kernel cannot give its id, or that of the group
    it leads, to another process.
    """
    if child.returncode is not None:
        return child.returncode
    found = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def signal_group(leader: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to the group of a child that leads one; a leader that was buried has none that could be known."""
    if leader.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, number)
