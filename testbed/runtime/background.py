"""A background thread for work that would delay a slot: writing, reading back, publishing."""

from __future__ import annotations

import queue
import selectors
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

Job = Callable[[], Any]
Then = Callable[[Any], None]
ResultT = TypeVar("ResultT")


class UnderWay:
    """Times what a thread is doing, for other threads to see: such as its request to a store that may not answer."""

    def __init__(self) -> None:
        self._begun_s: float | None = None  # by the monotonic clock

    @property
    def seconds(self) -> float:
        """How long it has taken by now; 0 if nothing is under way."""
        begun_s = self._begun_s
        return 0.0 if begun_s is None else time.monotonic() - begun_s

    def do(self, job: Callable[[], ResultT]) -> ResultT:
        """Do a job in this thread; `seconds` counts meanwhile."""
        self._begun_s = time.monotonic()
        try:
            return job()
        finally:
            self._begun_s = None


class Results:
    """What threads have done, to be dealt with in the slot's own thread, which it wakes."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._done: queue.SimpleQueue[tuple[Future[Any], Then]] = queue.SimpleQueue()
        self._selector = selector
        self._bell, self._heard = socket.socketpair()
        self._heard.setblocking(False)
        self._bell.setblocking(False)
        selector.register(self._heard, selectors.EVENT_READ, self._on_bell)

    def put(self, done: Future[Any], then: Then) -> None:
        """Hand over what a thread has done; called in any thread. `then` is called in the slot's own."""
        self._done.put((done, then))
        self._ring()

    def close(self) -> None:
        """Stop listening for results."""
        self._selector.unregister(self._heard)
        self._heard.close()
        self._bell.close()

    def _ring(self) -> None:
        with suppress(OSError):  # the listener is closed, or enough wake-ups are waiting for it already
            self._bell.send(b"!")

    def _on_bell(self, mask: int) -> None:
        """Deal with all that is done; if one result raises, the bell rings again for those after it."""
        self._heard.recv(4096)
        try:
            while not self._done.empty():
                done, then = self._done.get_nowait()
                if not done.cancelled():
                    then(done.result())
        finally:
            if not self._done.empty():
                self._ring()


class Background:
    """Does jobs in order; what each returns goes to its `then`, and what it raises is raised in the slot's thread."""

    def __init__(self, results: Results, name: str) -> None:
        self._results = results
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._under_way = UnderWay()

    @property
    def busy_s(self) -> float:
        """How long the job that is under way has taken by now [s]; 0 if there is none."""
        return self._under_way.seconds

    def submit(self, job: Job, then: Then) -> None:
        """Do a job after those before it, and call `then` with what it returns in the slot's thread."""
        self._pool.submit(self._under_way.do, job).add_done_callback(lambda done: self._results.put(done, then))

    def close(self) -> None:
        """Do nothing more than what is under way."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def finish(self, limit_s: float) -> None:
        """Do nothing more than what is under way, and return once that is over, or after this time [s]."""
        self.close()
        waiting = Thread(target=self._pool.shutdown, name="finish", daemon=True)
        waiting.start()
        waiting.join(limit_s)
