"""The queues of targets: order within one, none between two, and failures that are found."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from chaos.injection.target_queues import CHECK_S, TargetQueues
from experiments import waiting

LIMIT_S = 60


def test_tasks_of_one_target_do_not_overlap_and_those_of_two_do() -> None:
    queues, may_end, done = TargetQueues(), threading.Event(), []

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
    assert queues.failures() == []


def test_a_failure_is_found_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError("no heal")

    now_s = [1000.0]
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    queues = TargetQueues()
    with pytest.raises(ValueError, match="no heal"):
        queues.add("worker-1", fail).result(LIMIT_S)
    queues.add("worker-1", lambda: None).result(LIMIT_S)
    assert queues.a_task_failed()
    assert not queues.a_task_failed(), "it looks again only after a while"
    now_s[0] += 2 * CHECK_S
    assert queues.a_task_failed()
    assert [str(failure) for failure in queues.failures()] == ["no heal"]
    queues.close()
