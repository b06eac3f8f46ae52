"""Which DAG runs of `benchmark` a task still waits for.

A task that is cleared, or ended by hand, waits no longer. Airflow leaves the DAG run that it requested as it is: its
run would go on, and the next one would be measured beside it.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from airflow.sdk import get_current_context

from aftershock.airflow.dag_run_ids import Request
from experiments.errors import BadInput, EnvironmentFailure
from experiments.waiting import wait_for

log = logging.getLogger(__name__)
REQUESTED = "requested"  # the XCom key under which a task leaves the id of the DAG run that it requests
WAITS = frozenset({"running", "deferred"})  # states of a task that waits: at first it requests the DAG run
OVER = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})  # states of one that has waited
LATER = "later"  # in place of a state: the task has requested another DAG run since
END_POLL_S, END_LIMIT_S = 1.0, 3600.0  # a step that cannot be interrupted ends first


def require_waiting_task(dag_run: str) -> None:
    """Raise `EnvironmentFailure` if a task requested this DAG run of `benchmark` and does not wait for it any more.

    To be called within a task. A DAG run that a person triggered is nobody else's to judge.
    """
    request = Request.of(dag_run)
    if request and _state_of_the_task(request) not in WAITS:
        where = f"DAG run {request.dag_run} of {request.dag_id}"
        cause = f"no task waits for this run: {where} was cleared, or ended by hand"
        raise EnvironmentFailure(cause, "to measure it all the same, trigger the DAG with this experiment")


def end_runs_of_earlier_tries() -> None:
    """End the live runs that tasks requested which have been cleared since, and return once they are torn down.

    To be called within a task, whose own run would be measured beside them: a task that is cleared gives up its slot
    in the pool, and any other one may get it before. A run goes on if its task waits for it, or had ended when a person
    cleared the DAG run. Raises `EnvironmentFailure` if a run cannot be aborted, or does not end.
    """
    from aftershock.run.abort import abort  # here, since the DAG file must parse fast
    from results.runs import store

    for run_id in store.all_live():
        request = Request.of(store.live(run_id).known_status().dag_run)
        if request and _state_of_the_task(request) not in WAITS | OVER:
            with suppress(BadInput):  # it has ended meanwhile
                log.warning("%s, whose task was cleared, %s", run_id, abort(run_id).outcome)
            _wait_for_the_end(run_id)


def _wait_for_the_end(run_id: str) -> None:
    from results.runs import store

    cause, remedy = f"run {run_id} was aborted, and is still live after {END_LIMIT_S:.0f} s", "look at its DAG run"
    wait_for(lambda: run_id not in store.all_live(), cause, remedy, interval_s=END_POLL_S, limit_s=END_LIMIT_S)


def _state_of_the_task(request: Request) -> str | None:
    """The state of the task that requested a DAG run; None if it is not there, `LATER` if it has requested another one.

    What a task has left is there until it begins again. But with a clearing it loses its state.
    """
    from airflow.sdk.execution_time.xcom import XCom

    where = {"dag_id": request.dag_id, "task_id": request.task_id, "run_id": request.dag_run}
    if XCom.get_one(key=REQUESTED, map_index=request.map_index, **where) != request.id:
        return LATER
    ti = get_current_context()["ti"]
    found = ti.get_task_states(dag_id=request.dag_id, task_ids=[request.task_id], run_ids=[request.dag_run])
    state: str | None = found.get(request.dag_run, {}).get(f"{request.task_id}_{request.map_index}")
    return state
