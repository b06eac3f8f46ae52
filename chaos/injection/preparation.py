"""Prepares strikes in advance, and checks each again just before it is due."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier
from typing import Any

from chaos.injection.planned_strike import PlannedStrike
from infra.cluster import Driver, Handle
from infra.processes import take_precedence
from infra.strikes.strike import Strike

MOST_THREADS = 64


class Preparation:
    """A pool of threads for what takes a strike time before it is due. They run at the injector's real-time priority.

    `healed` returns when the latest heal of a target has ended: a strike is prepared on a host that is well.
    """

    def __init__(self, driver: Driver, handle: Handle, healed: Callable[[str], None]) -> None:
        self._driver, self._handle, self._healed = driver, handle, healed
        threads = min(len(handle.hosts) + 1, MOST_THREADS)
        self.pool = ThreadPoolExecutor(threads, initializer=take_precedence)
        started = Barrier(threads + 1)  # whoever starts a thread waits until it has a core, and a strike cannot
        for _ in range(threads):
            self.pool.submit(started.wait)
        started.wait()
        self._prepared: dict[PlannedStrike, Future[Strike]] = {}

    def begin(self, planned: PlannedStrike) -> None:
        """Begin to prepare a strike."""
        self._prepared[planned] = self.pool.submit(self._once_healed, planned.target, self._prepare, planned)

    def _prepare(self, planned: PlannedStrike) -> Strike:
        options = planned.event.options.on(planned.host)
        return self._driver.prepare(self._handle, planned.host, planned.kind, options)

    def is_prepared(self, planned: PlannedStrike) -> bool:
        """Whether the preparation of a strike has ended."""
        return self._prepared[planned].done()

    def recheck(self, planned: PlannedStrike) -> Future[bool]:
        """Check a prepared strike again: whether its host is up. Raises what its preparation raised."""
        return self.pool.submit(self._once_healed, planned.target, self._prepared[planned].result().refresh)

    def _once_healed(self, target: str, act: Callable[..., Any], *arguments: Any) -> Any:
        self._healed(target)
        return act(*arguments)

    def take(self, planned: PlannedStrike) -> Strike:
        """A prepared strike, which is now the caller's to fire or to close."""
        return self._prepared.pop(planned).result()

    def close(self) -> None:
        """Wait for preparations and checks that are in progress, and close every prepared strike that was not taken."""
        self.pool.shutdown()
        for prepared in self._prepared.values():
            if prepared.exception() is None:
                prepared.result().close()
