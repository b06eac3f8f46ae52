"""Proofs and heals run beside the injector's main thread, which never waits for a host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from experiments.waiting import Deadline

CHECK_S = 0.05  # the time of a check grows with the number of tasks


class TargetQueues:
    """A queue of tasks for each host or service (its target): tasks of one target never overlap."""

    def __init__(self) -> None:
        self._threads: dict[str, ThreadPoolExecutor] = defaultdict(partial(ThreadPoolExecutor, 1))
        self._tasks: list[Future[None]] = []
        self._next_check = Deadline(0)

    def add(self, target: str, act: Callable[..., None], *arguments: Any) -> Future[None]:
        """Add a task to the queue of a target."""
        task = self._threads[target].submit(act, *arguments)
        self._tasks.append(task)
        return task

    @property
    def busy(self) -> bool:
        """Whether a task has not ended."""
        return not all(task.done() for task in self._tasks)

    def a_task_failed(self) -> bool:
        """Whether a task was found to have failed. Forgets those that have ended well; looks every `CHECK_S` only."""
        if not self._next_check.passed:
            return False
        self._next_check = Deadline(CHECK_S)
        running = [task for task in self._tasks if not task.done()]
        failed = [task for task in self._tasks if task.done() and task.exception()]
        self._tasks = running + failed
        return bool(failed)

    def close(self) -> None:
        """Wait until every task has ended."""
        for thread in self._threads.values():
            thread.shutdown()

    def failures(self) -> list[BaseException]:
        """What the tasks raised; waits for those that have not ended."""
        return [failure for task in self._tasks if (failure := task.exception())]
