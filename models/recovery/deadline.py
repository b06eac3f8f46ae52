"""A limit on the time of a planner, which looks at the clock again and again amid its work."""

from __future__ import annotations

import math
from collections.abc import Callable

from experiments.waiting import Deadline

GoOn = Callable[[], None]


class OutOfTime(Exception):
    """The time limit came before the planner was done."""


def deadline(limit_s: float) -> GoOn:
    """What raises `OutOfTime` once the limit [s], which begins now, is over; at once for a limit of 0 or less."""
    end = Deadline(limit_s)

    def go_on() -> None:
        if end.passed:
            raise OutOfTime

    return go_on


NO_LIMIT = deadline(math.inf)
