"""Proofs and heals run beside the injector's main thread, which never waits for a host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any


class TargetQueues:
    """A queue of tasks for each host or service (its target): tasks of one target never overlap.

    failures   what the tasks that have ended raised, the first one first
    """

    def __init__(self, on_failure: Callable[[], None]) -> None:
        """`on_failure` is called when a task has failed, in the thread of that task."""
        self.failures: list[BaseException] = []
        self._on_failure = on_failure
        self._threads: dict[str, ThreadPoolExecutor] = defaultdict(partial(ThreadPoolExecutor, 1))
        self._unfinished: set[Future[None]] = set()

    def add(self, target: str, act: Callable[..., None], *arguments: Any) -> Future[None]:
        """Add a task to the queue of a target."""
        task = self._threads[target].submit(act, *arguments)
        self._unfinished.add(task)
        task.add_done_callback(self._note_end)  # after `_unfinished` has it: a task may have ended already
        return task

    def _note_end(self, task: Future[None]) -> None:
        if failure := task.exception():
            self.failures.append(failure)
            self._on_failure()
        self._unfinished.remove(task)

    @property
    def busy(self) -> bool:
        """Whether a task has not ended."""
        return bool(self._unfinished)

    def close(self) -> None:
        """Wait until every task has ended."""
        for thread in self._threads.values():
            thread.shutdown()
