"""How long a partition may save parts of its state."""

from __future__ import annotations

import time

from testbed.operators.parts import TOGETHER
from testbed.output_log.partition import Budget
from testbed.output_log.policies import CheckPacing


class PacedBudget(Budget):
    """CI seconds of this thread's CPU time in every CP seconds: a period begins with the first frame after the end of
    the one before. By the wall clock CI would be over as soon as another process has taken the core."""

    def __init__(self, pace: CheckPacing) -> None:
        self._pace = pace
        self._next_s = self._until_s = 0.0

    def begins(self) -> bool:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + self._pace.period_s
        self._until_s = time.thread_time() + self._pace.interval_s
        return True

    def more(self) -> int:
        return TOGETHER if time.thread_time() < self._until_s else 0
