"""Ends a run of the DAG `benchmark` when the task that waits for it is marked as failed, skipped or a success by hand.

Otherwise the run would go on until the next one is to begin. Airflow calls these listeners when a task ends in any way.
The task's run is then still live if a person ended the task, or if Airflow requested its DAG run a second time, since
the first answer was lost. What has no live run yet is refused when it begins. `aftershock.airflow.dag_run_ids` tells
which runs are a task's.

The API server and the scheduler call them amid a transaction of theirs, and an abort takes seconds. So a thread aborts
the runs. A scheduler or a task's process that stops waits for this thread, at most for `STOPPING_LIMIT_S`. The API
server does not wait. The next task that requests a run ends the runs that are left.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import Any

from airflow.listeners import hookimpl

from experiments.errors import BadInput
from experiments.waiting import Deadline

log = logging.getLogger(__name__)
WAITING_DAGS = frozenset({"nightly", "reproduce"})
THREAD = "ends runs for which no task waits"
STOPPING_LIMIT_S = 10.0  # an abort takes some seconds, and `aftershock serve` kills a process that takes 15 s to end


@hookimpl
def on_task_instance_failed(task_instance: Any) -> None:
    """A task has failed, or was marked so; in the second case, the API server calls this."""
    _end_run_of(task_instance)


@hookimpl
def on_task_instance_success(task_instance: Any) -> None:
    """A task is done, or was marked so."""
    _end_run_of(task_instance)


@hookimpl
def on_task_instance_skipped(task_instance: Any) -> None:
    """A task has skipped itself, or was marked so."""
    _end_run_of(task_instance)


@hookimpl
def before_stopping(component: Any) -> None:
    """The process is about to end, which would cut an abort short; the API server does not call this."""
    given_up = Deadline(STOPPING_LIMIT_S)
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(max(given_up.left_s, 0.0))


def _end_run_of(task_instance: Any) -> None:
    """Abort the live run of the DAG run that this task requested."""
    if task_instance.dag_id not in WAITING_DAGS:
        return
    from aftershock.airflow.dag_run_ids import Request  # here, since every process of Airflow loads this module
    from results.runs import store

    asked = []
    for run_id in store.all_live():
        status = store.live(run_id).known_status()
        request = Request.behind(status.dag_run, status.attempt)
        if request and request.is_by(task_instance):
            asked.append(run_id)
    if asked:
        threading.Thread(target=_end, args=(asked,), name=THREAD, daemon=True).start()  # the exit does not wait for it


def _end(run_ids: list[str]) -> None:
    from aftershock.watch import live

    for run_id in run_ids:
        with suppress(BadInput):  # it has ended meanwhile
            log.warning("no task waits for %s any more: %s", run_id, live.end(run_id))
