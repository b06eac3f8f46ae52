"""Waits for a condition: how often to look, and for how long.

Needs the standard library only, because agents on hosts use it too. Durations are seconds of the monotonic clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

from experiments.errors import EnvironmentFailure

AnswerT = TypeVar("AnswerT")


class Deadline:
    """The moment that is `limit_s` [s] from now; for loops that act between two looks."""

    def __init__(self, limit_s: float = math.inf) -> None:
        self._at_s = time.monotonic() + limit_s

    @property
    def left_s(self) -> float:
        """How long it is until then [s]; negative once it has passed."""
        return self._at_s - time.monotonic()

    @property
    def passed(self) -> bool:
        """Whether it has passed."""
        return self.left_s <= 0


def poll_until(look: Callable[[], AnswerT], *, interval_s: float, limit_s: float = math.inf) -> AnswerT:
    """Look at once, then every `interval_s`, until the answer is true or `limit_s` has passed; the last answer.

    It looks at least once. The answer is false only if the time has passed.
    """
    deadline = Deadline(limit_s)
    while not (answer := look()) and not deadline.passed:
        time.sleep(interval_s)
    return answer


def poll_while(look: Callable[[], AnswerT], *, interval_s: float, limit_s: float = math.inf) -> AnswerT:
    """Look at once, then every `interval_s`, until the answer is false or `limit_s` has passed; the last answer.

    It looks at least once. The answer is true only if the time has passed: then it is what is left.
    """
    deadline = Deadline(limit_s)
    while (answer := look()) and not deadline.passed:
        time.sleep(interval_s)
    return answer


def wait_for(look: Callable[[], object], cause: str, remedy: str, *, interval_s: float, limit_s: float) -> None:
    """Return once an answer is true. Raises `EnvironmentFailure` with `cause` and `remedy` when `limit_s` has passed.

    `cause` says what did not come about, and in what time.
    """
    if not poll_until(look, interval_s=interval_s, limit_s=limit_s):
        raise EnvironmentFailure(cause, remedy)


def retry(
    act: Callable[[], AnswerT],
    failures: type[Exception] | tuple[type[Exception], ...],
    *,
    interval_s: float,
    limit_s: float = math.inf,
) -> AnswerT:
    """Act, and retry every `interval_s` as long as it raises one of `failures`; returns the result of the success.

    Raises the last failure when `limit_s` has passed, and any other exception at once.
    """
    deadline = Deadline(limit_s)
    while True:
        try:
            return act()
        except failures:
            if deadline.passed:
                raise
        time.sleep(interval_s)
