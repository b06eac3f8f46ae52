"""The queues of targets: order within one, none between two, and failures that are found."""

from __future__ import annotations

import threading
import time

import pytest

from chaos.injection.target_queues import CHECK_S, TargetQueues


def test_tasks_of_one_target_do_not_overlap_and_those_of_two_do() -> None:
    queues, may_end, done = TargetQueues(), threading.Event(), []

    def first() -> None:
        may_end.wait(5)
        done.append("first")

    queues.add("worker-1", first)
    queues.add("worker-1", done.append, "second")
    queues.add("worker-2", done.append, "elsewhere").result(5)
    assert (queues.busy, done) == (True, ["elsewhere"])
    may_end.set()
    queues.close()
    assert (queues.busy, done) == (False, ["elsewhere", "first", "second"])
    assert queues.failures() == []


def test_a_failure_is_found_and_kept() -> None:
    def fail() -> None:
        raise ValueError("no heal")

    queues = TargetQueues()
    with pytest.raises(ValueError, match="no heal"):
        queues.add("worker-1", fail).result(5)
    queues.add("worker-1", lambda: None).result(5)
    assert queues.a_task_failed()
    assert not queues.a_task_failed(), "it looks again only after a while"
    time.sleep(CHECK_S)
    assert queues.a_task_failed()
    assert [str(failure) for failure in queues.failures()] == ["no heal"]
    queues.close()
