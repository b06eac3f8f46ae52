"""The checkpoint and restart process event by event, as sections 3 and 4 of the `utilization` paper tell it.

Plain and slow: the tests compare the vectorised process with it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum


def simulate_event_by_event(
    failures: Iterable[float],
    *,
    window: float,
    interval: float,
    checkpoint_cost: float,
    recovery_time: float,
    hop_delay: float = 0.0,
    depth: int = 1,
) -> float:
    """The useful share of [0, window] of one system under failures at these times: `Process.utilizations` of one run.

    failures  ascending; the system starts with the recovery from the first, which should not come after time 0.
    """
    system = _System(interval, recovery_time, hop_delay, depth, window)
    for failure in failures:
        system.proceed_until(failure)
        system.fail(failure)
    system.proceed_until(math.inf)
    return system.kept / window * (interval - checkpoint_cost) / interval


class _Event(IntEnum):
    """What can happen. Of events at one instant, a success comes first: P[X >= T] is success in the paper."""

    CHECKPOINT_COMPLETE = 0
    RECOVERED = 1
    PERIOD_END = 2
    FAILURE = 3


@dataclass
class _System:
    interval: float
    recovery_time: float
    hop_delay: float
    depth: int
    window: float
    kept: float = 0.0  # time within the window, in periods whose checkpoint is complete
    agenda: list[tuple[float, _Event, float]] = field(default_factory=list)  # when, what, start of the period it is of

    def proceed_until(self, failure: float) -> None:
        """Let happen what comes before a failure."""
        while self.agenda and self.agenda[0][:2] < (failure, _Event.FAILURE):
            now, event, start = heapq.heappop(self.agenda)
            if event is _Event.CHECKPOINT_COMPLETE:
                self._keep_period(start)
            elif event is _Event.RECOVERED:
                self._begin_period(now)
            elif event is _Event.PERIOD_END:
                self._send_token(start, now)
                self._begin_period(now)

    def fail(self, now: float) -> None:
        """Every operator rolls back: the period, the tokens on their way and a recovery under way are all gone."""
        self.agenda = [(now + self.recovery_time, _Event.RECOVERED, now)]

    def _begin_period(self, now: float) -> None:
        if now < self.window:  # what begins later has no part in the window
            heapq.heappush(self.agenda, (now + self.interval, _Event.PERIOD_END, now))

    def _send_token(self, start: float, now: float) -> None:
        """The checkpoint's token passes along the n - 1 streams of the longest path, from operator to operator."""
        arrival = now
        for _ in range(self.depth - 1):
            arrival += self.hop_delay
        heapq.heappush(self.agenda, (arrival, _Event.CHECKPOINT_COMPLETE, start))

    def _keep_period(self, start: float) -> None:
        """The sinks have their checkpoint too: no failure takes the period back any more."""
        self.kept += max(0.0, min(start + self.interval, self.window) - max(start, 0.0))
