"""Waiting: how often the condition is checked, when waiting ends, and what is returned or raised then."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments import waiting
from experiments.errors import EnvironmentFailure
from experiments.waiting import Deadline, poll_until, poll_while, retry, wait_for

REPOSITORY = Path(__file__).parents[3]


class Clock:
    """A monotonic clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s, self.slept = 1000.0, list[float]()

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.slept.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(waiting, "time", found)
    return found


def one_after_another(*answers: object) -> Callable[[], object]:
    """Gives these answers, and then the last one again and again."""
    left = list(answers)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_a_deadline_passes_when_its_time_has_come(clock: Clock) -> None:
    deadline = Deadline(2.0)
    clock.sleep(1.5)
    assert (deadline.left_s, deadline.passed) == (0.5, False)
    clock.sleep(0.5)
    assert (deadline.left_s, deadline.passed) == (0.0, True)
    clock.sleep(1e9)
    assert not Deadline().passed


def test_polling_ends_with_the_first_answer_that_is_true(clock: Clock) -> None:
    assert poll_until(one_after_another([], [], [7]), interval_s=0.25, limit_s=10) == [7]
    assert clock.slept == [0.25, 0.25]
    assert poll_until(one_after_another("at once"), interval_s=0.25, limit_s=0) == "at once"
    assert clock.slept == [0.25, 0.25]


def test_polling_ends_with_the_first_answer_that_is_false(clock: Clock) -> None:
    assert poll_while(one_after_another([1, 2], [2], []), interval_s=0.25, limit_s=10) == []
    assert clock.slept == [0.25, 0.25]


def test_at_the_limit_polling_returns_the_last_answer(clock: Clock) -> None:
    assert poll_until(one_after_another(0), interval_s=1, limit_s=3) == 0
    assert clock.slept == [1, 1, 1]
    assert poll_while(one_after_another([1, 2], [2]), interval_s=1, limit_s=3) == [2]
    assert clock.slept == [1, 1, 1] * 2


def test_without_a_limit_polling_goes_on(clock: Clock) -> None:
    assert poll_until(lambda: clock.now_s > 5000, interval_s=1)
    assert len(clock.slept) > 4000


def test_waiting_for_what_comes_returns_and_for_what_does_not_fails_in_the_words_of_the_caller(clock: Clock) -> None:
    wait_for(one_after_another(False, True), "no port in 2 s", "see the log", interval_s=1, limit_s=2)
    with pytest.raises(EnvironmentFailure, match=r"^no port in 2 s; see the log$"):
        wait_for(one_after_another(False), "no port in 2 s", "see the log", interval_s=1, limit_s=2)
    assert clock.slept == [1, 1, 1]


def test_an_attempt_is_retried_until_it_succeeds(clock: Clock) -> None:
    failures = [ConnectionRefusedError("first"), TimeoutError("second")]

    def attempt() -> str:
        if failures:
            raise failures.pop(0)
        return "connected"

    assert retry(attempt, OSError, interval_s=0.5, limit_s=10) == "connected"
    assert clock.slept == [0.5, 0.5]


def test_the_last_failure_is_raised_at_the_limit_and_another_exception_at_once(clock: Clock) -> None:
    failures = iter(map(str, range(100)))

    def fail() -> None:
        raise ConnectionRefusedError(next(failures))

    with pytest.raises(ConnectionRefusedError, match=r"^3$"):
        retry(fail, (OSError, EOFError), interval_s=1, limit_s=3)
    with pytest.raises(ConnectionRefusedError, match=r"^4$"):
        retry(fail, EOFError, interval_s=1, limit_s=3)
    assert clock.slept == [1, 1, 1]


def test_agents_can_use_it_without_installed_packages() -> None:
    program = "import experiments.waiting, sys; sys.exit(any('site-packages' in path for path in sys.path))"
    assert subprocess.run([sys.executable, "-S", "-c", program], cwd=REPOSITORY).returncode == 0
