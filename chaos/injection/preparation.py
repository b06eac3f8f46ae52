"""Prepares strikes in advance, and checks each again just before it is due."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future
from functools import partial
from threading import Semaphore
from typing import TypeVar

from chaos.injection.planned_strike import PlannedStrike
from infra.cluster import Driver, Handle
from infra.strikes.strike import Strike
from infra.threads import started_thread

MOST_AT_ONCE = 64  # the main thread shares the interpreter with all that are at work
ResultT = TypeVar("ResultT")


class Preparation:
    """A thread for each host or service (its target), for what takes a strike time before it is due.

    So a target that does not answer, or whose heal takes long, holds up the strikes on no other one. The threads run at
    the injector's real-time priority. `healed` returns when the latest heal of a target has ended: a strike is prepared
    on a host that is well.
    """

    def __init__(self, driver: Driver, handle: Handle, targets: Iterable[str], healed: Callable[[str], None]) -> None:
        self._driver, self._handle, self._healed = driver, handle, healed
        self._threads = {each: started_thread() for each in set(targets)}
        self._at_work = Semaphore(MOST_AT_ONCE)
        self._prepared: dict[PlannedStrike, Future[Strike]] = {}
        self._is_stopped = False

    def begin(self, planned: PlannedStrike) -> None:
        """Begin to prepare a strike."""
        options = planned.event.options.on(planned.host)
        prepare = partial(self._driver.prepare, self._handle, planned.host, planned.kind, options)
        self._prepared[planned] = self._once_healed(planned.target, prepare)

    def is_prepared(self, planned: PlannedStrike) -> bool:
        """Whether the preparation of a strike has ended."""
        return self._prepared[planned].done()

    def recheck(self, planned: PlannedStrike) -> Future[bool]:
        """Check a prepared strike again: whether its host is up. The answer raises what its preparation raised."""
        prepared = self._prepared[planned]
        return self._once_healed(planned.target, lambda: prepared.result().refresh())

    def _once_healed(self, target: str, act: Callable[[], ResultT]) -> Future[ResultT]:
        def wait_and_act() -> ResultT:
            self._healed(target)
            if self._is_stopped:
                raise CancelledError
            with self._at_work:
                return act()

        return self._threads[target].submit(wait_and_act)

    def take(self, planned: PlannedStrike) -> Strike:
        """A prepared strike, which is now the caller's to fire or to close."""
        return self._prepared.pop(planned).result()

    def give_up(self, planned: PlannedStrike) -> None:
        """Close a strike whose preparation has ended, if there is one to close."""
        prepared = self._prepared.pop(planned)
        if not prepared.cancelled() and prepared.exception() is None:
            prepared.result().close()

    def stop(self) -> None:
        """Begin no further step, also on hosts whose heal is in progress."""
        self._is_stopped = True
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Stop, wait for the steps that are in progress, and close every strike that was not taken."""
        self.stop()
        for thread in self._threads.values():
            thread.shutdown()
        for planned in list(self._prepared):
            self.give_up(planned)
