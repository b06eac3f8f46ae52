"""Ends a run of the DAG `benchmark` when the task that waits for it is marked as failed or as a success by hand.

Otherwise the run would go on, and the next one would be measured beside it. Airflow calls these listeners when a task
ends in any way; only if that was done by hand has the task's run not ended. What has no live run yet goes on.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from airflow.listeners import hookimpl

from experiments.errors import BadInput

log = logging.getLogger(__name__)
WAITING_DAGS = frozenset({"nightly", "reproduce"})


@hookimpl
def on_task_instance_failed(task_instance: Any) -> None:
    """A task has failed, or was marked so; in the second case, the API server calls this."""
    _end_run_of(task_instance)


@hookimpl
def on_task_instance_success(task_instance: Any) -> None:
    """A task is done, or was marked so."""
    _end_run_of(task_instance)


def _end_run_of(task_instance: Any) -> None:
    """Abort the live run of the DAG run that this task requested (`nightly.cell` makes its id)."""
    if task_instance.dag_id not in WAITING_DAGS:
        return
    from aftershock.watch import live  # here, since every process of Airflow loads this module
    from results.runs import store

    first, last = f"{task_instance.run_id}__", f"__{task_instance.rendered_map_index}"
    for run_id in store.all_live():
        dag_run = store.live(run_id).known_status().dag_run or ""
        if dag_run.startswith(first) and dag_run.endswith(last):
            with suppress(BadInput):  # it has ended meanwhile
                log.warning("no task waits for %s any more: %s", run_id, live.end(run_id))
