"""The queues of targets: order within one, none between two, and failures that are told of."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from chaos.injection.target_queues import TargetQueues
from infra.processes import take_precedence

LIMIT_S = 60


def test_tasks_of_one_target_do_not_overlap_and_those_of_two_do() -> None:
    told: list[str] = []
    queues, may_end, done = (
        TargetQueues(["worker-1", "worker-2"], lambda: told.append("failure")),
        threading.Event(),
        [],
    )

    def first() -> None:
        may_end.wait(LIMIT_S)
        done.append("first")

    queues.add("worker-1", first)
    queues.add("worker-1", done.append, "second")
    queues.add("worker-2", done.append, "elsewhere").result(LIMIT_S)
    assert (queues.busy, done) == (True, ["elsewhere"])
    may_end.set()
    queues.close()
    assert (queues.busy, done) == (False, ["elsewhere", "first", "second"])
    assert (queues.failures, told) == ([], [])


def test_a_failure_is_told_at_once_and_kept() -> None:
    told = threading.Event()
    queues = TargetQueues(["worker-1"], told.set)

    def fail() -> None:
        raise ValueError("no heal")

    with pytest.raises(ValueError, match="no heal"):
        queues.add("worker-1", fail).result(LIMIT_S)
    assert told.wait(LIMIT_S)
    queues.add("worker-1", lambda: None).result(LIMIT_S)
    queues.close()
    assert [str(failure) for failure in queues.failures] == ["no heal"]
    assert not queues.busy


def test_tasks_have_the_priority_that_a_thread_may_have() -> None:
    """At most the lowest nice value, or none, for a user without the right: then this compares nothing."""
    found: list[tuple[int, int]] = []

    def note() -> None:
        found.append((os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))

    with ThreadPoolExecutor(1, initializer=take_precedence) as pool:
        pool.submit(note).result(LIMIT_S)
    queues = TargetQueues(["worker-1"], lambda: None)
    queues.add("worker-1", note)
    queues.close()
    precedent, own = found
    assert own == precedent


def test_no_thread_is_started_later() -> None:
    """A strike would wait until the new thread has a core."""
    queues = TargetQueues(["worker-1", "worker-2"], lambda: None)
    before = set(threading.enumerate())
    for target in ("worker-1", "worker-2"):
        queues.add(target, lambda: None).result(LIMIT_S)
    assert set(threading.enumerate()) <= before
    queues.close()
