"""Threads that are started before they are needed, and with which precedence."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from infra import threads
from infra.processes import has_precedence, take_precedence
from infra.threads import precedence_here, started_thread

LIMIT_S = 60.0


def test_a_thread_runs_with_precedence_before_it_has_a_task() -> None:
    before = set(threading.enumerate())
    thread = started_thread()
    (made,) = set(threading.enumerate()) - before
    assert has_precedence(made.native_id or 0)
    assert thread.submit(threading.current_thread).result(LIMIT_S) is made
    assert set(threading.enumerate()) - before == {made}
    thread.shutdown()


def test_a_thread_is_born_with_the_precedence_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a busy machine takes tens of milliseconds for each of a hundred threads. It needs the right to it."""
    monkeypatch.setattr(threads, "take_precedence", lambda: None)
    before = os.sched_getscheduler(0)
    thread = started_thread()
    born = thread.submit(os.sched_getscheduler, 0).result(LIMIT_S)
    with ThreadPoolExecutor(1, initializer=take_precedence) as precedent:
        taken = precedent.submit(os.sched_getscheduler, 0).result(LIMIT_S)
    assert born == taken & ~os.SCHED_RESET_ON_FORK
    assert os.sched_getscheduler(0) == before, "this thread keeps the priority that it had"
    thread.shutdown()


def test_a_thread_shares_the_precedence_of_the_one_that_starts_it_and_takes_none_by_itself() -> None:
    def found_in_another() -> bool:
        with ThreadPoolExecutor(1, initializer=precedence_here()) as another:
            return another.submit(has_precedence).result(LIMIT_S)

    with ThreadPoolExecutor(1) as usual:
        assert usual.submit(found_in_another).result(LIMIT_S) is False
    with ThreadPoolExecutor(1, initializer=take_precedence) as precedent:
        assert precedent.submit(found_in_another).result(LIMIT_S) is True
