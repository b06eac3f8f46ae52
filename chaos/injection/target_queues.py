"""Proofs and heals run beside the injector's main thread, which never waits for a host.

Their threads have the injector's real-time priority. All its threads share one interpreter: a thread that holds it and
is not on a core, because the measured load is, would hold up the next strike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from infra.threads import started_thread


class TargetQueues:
    """A queue of tasks for each host or service (its target): tasks of one target never overlap.

    failures   what the tasks that have ended raised, the first one first
    """

    def __init__(self, targets: Iterable[str], on_failure: Callable[[], None]) -> None:
        """Start a thread for each target now, so that none is started while strikes are due.

        `on_failure` is called when a task has failed, in the thread of that task.
        """
        self.failures: list[BaseException] = []
        self._on_failure = on_failure
        self._threads = {each: started_thread() for each in set(targets)}
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
