"""A session with a program on a host, over any transport, and the offset of the host's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from experiments.errors import EnvironmentFailure
from infra.clocks import ClockOffset

PINGS = 8


class Disconnected(EnvironmentFailure):
    """The connection, or the program at its far end, is gone."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the connection to a host was lost ({reason})", "see the host's log of what it went through")


class Unsent(Disconnected):
    """The connection was gone before the request was sent, so the host has not seen it."""


class Session(Protocol):
    """A program on a host that is asked one JSON line at a time, and answers with one; threads take turns to ask."""

    @property
    def alive(self) -> bool:
        """Whether the program and the connection to it are there, as far as this end can tell without asking."""

    def tell(self, **request: Any) -> None:
        """Send a request that has no answer, even while another thread awaits one; raises `Disconnected`."""
        ...

    def ask(self, within_s: float, **request: Any) -> Any:
        """Send a request and return its answer; raises `Disconnected` when there is none within `within_s` [s], too.

        Raises `Unsent` if the connection is found to be gone when it is this thread's turn.
        """
        ...

    def close(self) -> None:
        """Close the connection, which ends the program."""


def measure_offset(ask_clock: Callable[[], int], pings: int = PINGS) -> ClockOffset:
    """Ask a host for its time [UTC ns] several times; the answer with the shortest round trip tells most.

    It was given at some moment of that trip, so the offset from the trip's middle is off by half of it at most
    (Cristian, Probabilistic clock synchronization, 1989).
    """
    found = []
    for _ in range(pings):
        before_ns = time.time_ns()
        there_ns = ask_clock()
        after_ns = time.time_ns()
        found.append((after_ns - before_ns, there_ns - (before_ns + after_ns) // 2))
    trip_ns, offset_ns = min(found)
    return ClockOffset(offset_ns, trip_ns // 2)
