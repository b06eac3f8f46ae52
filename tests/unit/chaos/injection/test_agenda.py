"""The agenda of the injector: what comes first, what is retried, and what a stop leaves out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from chaos.injection.agenda import RETRY_NS, Agenda

PAST_NS = 1


@pytest.fixture
def agenda() -> Agenda:
    return Agenda()


def carried_out(agenda: Agenda) -> None:
    for act in agenda.due():
        act()


def test_steps_come_in_the_order_of_their_due_times(agenda: Agenda) -> None:
    done: list[str] = []
    for due_ns, name in ((3, "third"), (1, "first"), (2, "second")):
        agenda.add(due_ns, done.append, name)
    assert len(agenda) == 3
    carried_out(agenda)
    assert done == ["first", "second", "third"]


def test_of_simultaneous_steps_those_with_numbers_come_first_in_their_order(agenda: Agenda) -> None:
    done: list[str] = []
    for name, number in (("heal", None), ("strike 1", 1), ("later heal", None), ("strike 0", 0)):
        agenda.add(PAST_NS, done.append, name, number=number)
    carried_out(agenda)
    assert done == ["strike 0", "strike 1", "heal", "later heal"]


def test_a_step_may_add_steps(agenda: Agenda) -> None:
    done: list[str] = []
    agenda.add(PAST_NS, agenda.add, PAST_NS, done.append, "added by a step")
    carried_out(agenda)
    assert done == ["added by a step"]


def test_a_step_waits_until_it_is_due(agenda: Agenda) -> None:
    due_ns, begun_ns = time.time_ns() + 30_000_000, []
    agenda.add(due_ns, lambda: begun_ns.append(time.time_ns()))
    carried_out(agenda)
    assert begun_ns[0] >= due_ns


def test_a_retried_step_comes_after_what_is_due_by_then(agenda: Agenda) -> None:
    done: list[str] = []
    step: Callable[[], None] = lambda: done.append("retried")  # noqa: E731
    before_ns = time.time_ns()
    agenda.retry(step, number=0)
    agenda.add(before_ns + RETRY_NS // 2, done.append, "due", number=1)
    carried_out(agenda)
    assert done == ["due", "retried"]


def test_a_stop_leaves_out_what_is_still_to_come(agenda: Agenda) -> None:
    done: list[str] = []
    agenda.add(time.time_ns() + 60_000_000_000, done.append, "far away")
    stopping = threading.Timer(0.02, agenda.stop)
    began_s = time.monotonic()
    stopping.start()
    carried_out(agenda)
    assert time.monotonic() - began_s < 30, "it does not wait for what it leaves out"
    assert (agenda.stopped, done, len(agenda)) == (True, [], 1)
