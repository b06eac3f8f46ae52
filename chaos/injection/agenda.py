"""The agenda of the injector: its actions in the order of their due times."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

RETRY_NS = 2_000_000  # between checks whether what a step waits for has ended
LONGEST_SLEEP_S = 0.2  # until a request to stop is noticed


@dataclass(order=True)
class _Step:
    due_ns: int
    rank: tuple[bool, int]
    act: Callable[[], None] = field(compare=False)


class Agenda:
    """The steps that are still to come. Only one thread may use it, but any may stop it.

    If several steps are due at the same time, those with a number come first, in the order of their numbers. The others
    follow in the order in which they were added.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._steps: list[_Step] = []
        self._added = count()

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, due_ns: int, act: Callable[..., None], *arguments: Any, number: int | None = None) -> None:
        """Add a step that is due at `due_ns` (UTC nanoseconds)."""
        rank = (True, next(self._added)) if number is None else (False, number)
        heapq.heappush(self._steps, _Step(due_ns, rank, partial(act, *arguments)))

    def retry(self, act: Callable[..., None], *arguments: Any, number: int) -> None:
        """Try a step again soon, because what it waits for has not ended yet."""
        self.add(time.time_ns() + RETRY_NS, act, *arguments, number=number)

    def stop(self) -> None:
        """Give up the steps that are still to come; may be called by a signal handler, and by other threads."""
        self.stopped = True

    def due(self) -> Iterator[Callable[[], None]]:
        """Each step when it is due, until none is left or the agenda is stopped. A step may add further ones."""
        while self._steps and self._wait_until(self._steps[0].due_ns):
            yield heapq.heappop(self._steps).act

    def _wait_until(self, due_ns: int) -> bool:
        """Sleep until `due_ns`; returns False if the agenda was stopped before that."""
        while not self.stopped and (left_ns := due_ns - time.time_ns()) > 0:
            time.sleep(min(left_ns / 1e9, LONGEST_SLEEP_S))
        return not self.stopped
