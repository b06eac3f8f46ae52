"""The queues of targets: order within one, none between two, and failures that are told of."""

from __future__ import annotations

import threading

import pytest

from chaos.injection.target_queues import TargetQueues

LIMIT_S = 60


def test_tasks_of_one_target_do_not_overlap_and_those_of_two_do() -> None:
    told: list[str] = []
    queues, may_end, done = TargetQueues(lambda: told.append("failure")), threading.Event(), []

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
    queues = TargetQueues(told.set)

    def fail() -> None:
        raise ValueError("no heal")

    with pytest.raises(ValueError, match="no heal"):
        queues.add("worker-1", fail).result(LIMIT_S)
    assert told.wait(LIMIT_S)
    queues.add("worker-1", lambda: None).result(LIMIT_S)
    queues.close()
    assert [str(failure) for failure in queues.failures] == ["no heal"]
    assert not queues.busy
