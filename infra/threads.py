"""Threads beside one that must be on time: they share its precedence, and are started before they are needed.

All threads of a process share one interpreter. A thread that holds it and waits for a core delays every other one,
whatever their priorities. And whoever starts a thread waits until that has had a core.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from infra.processes import has_precedence, take_precedence


def started_thread() -> ThreadPoolExecutor:
    """One thread that runs already, with precedence, and carries out its tasks one by one: no task starts a thread."""
    thread = ThreadPoolExecutor(1, initializer=take_precedence)
    with _passing_precedence_on():
        started = thread.submit(_go_on)
    started.result()
    return thread


@contextmanager
def _passing_precedence_on() -> Iterator[None]:
    """Have threads that are started here run in real time from the first: otherwise a busy machine takes up to tens of
    milliseconds for each. Without the right, they begin as usual."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)


def precedence_here() -> Callable[[], None]:
    """What another thread calls first to have the precedence of this one; it does nothing if this one has none."""
    return take_precedence if has_precedence() else _go_on


def _go_on() -> None:
    pass
