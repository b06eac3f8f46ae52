"""Which runs of the DAG `benchmark` somebody still wants.

A run that a task requested goes on as long as the task waits for it. A task that is cleared, or ended by hand, waits no
longer. Airflow leaves the DAG run that it requested as it is: its run would go on, and the next one would be measured
beside it. A run whose DAG run a person triggered or cleared is that person's: only a person ends it.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from airflow.sdk import get_current_context

from aftershock.airflow.dag_run_ids import BENCHMARK, Request
from experiments.errors import BadInput, EnvironmentFailure
from experiments.waiting import wait_for

log = logging.getLogger(__name__)
REQUESTED = "requested"  # the XCom key under which a task leaves the id of the DAG run that it requests
WAITS = frozenset({"running", "deferred"})  # states of a task that waits: at first it requests the DAG run
GOES_ON = ["queued", "running"]  # states of a DAG run, also of one whose teardown is still to come
END_POLL_S, END_LIMIT_S = 1.0, 3600.0  # a step that cannot be interrupted ends first


def require_waiting_task(dag_run: str, attempt: int) -> None:
    """Raise `EnvironmentFailure` if a task requested this try of a DAG run of `benchmark` and waits for it no more.

    To be called within a task.
    """
    request = Request.behind(dag_run, attempt)
    if request and not _is_waited_for(request):
        where = f"DAG run {request.dag_run} of {request.dag_id}"
        cause = f"no task waits for this run: {where} was cleared, ended by hand, or deleted"
        raise EnvironmentFailure(cause, "to measure it all the same, clear this DAG run")


def end_runs_without_a_task() -> None:
    """End the live runs that tasks requested and do not wait for any more; returns once they are torn down.

    To be called within a task, whose own run would be measured beside them: a task that is cleared or ended by hand
    gives up its slot in the pool, and any other one may get it. If the teardown of a DAG run failed, what is left of
    its run is left to a person. Raises `EnvironmentFailure` if a run cannot be aborted, or does not end.
    """
    from results.runs import store

    for run_id in store.all_live():
        status = store.live(run_id).known_status()
        request = Request.behind(status.dag_run, status.attempt)
        if request and not _is_waited_for(request) and _goes_on(run_id, request):
            _end(run_id, request)


def _end(run_id: str, request: Request) -> None:
    from aftershock.run.abort import abort  # here, since the DAG file must parse fast

    with suppress(BadInput):  # it has ended meanwhile
        log.warning("%s, for which no task waits, %s", run_id, abort(run_id).outcome)
    cause, remedy = f"run {run_id} was aborted, and is still live after {END_LIMIT_S:.0f} s", "look at its DAG run"
    wait_for(lambda: not _goes_on(run_id, request), cause, remedy, interval_s=END_POLL_S, limit_s=END_LIMIT_S)


def _goes_on(run_id: str, request: Request) -> bool:
    """Whether a run is live, and its DAG run is to do something more about it."""
    from results.runs import store

    ti = get_current_context()["ti"]
    return run_id in store.all_live() and bool(ti.get_dr_count(BENCHMARK, run_ids=[request.id], states=GOES_ON))


def _is_waited_for(request: Request) -> bool:
    """Whether the task that requested a DAG run waits for it: it is in such a state, and has requested no other since.

    What a task has left is there until it begins again. But with a clearing it loses its state.
    """
    from airflow.sdk.execution_time.xcom import XCom

    ti = get_current_context()["ti"]
    found = ti.get_task_states(dag_id=request.dag_id, task_ids=[request.task_id], run_ids=[request.dag_run])
    if found.get(request.dag_run, {}).get(f"{request.task_id}_{request.map_index}") not in WAITS:
        return False
    left = XCom.get_one(
        key=REQUESTED,
        dag_id=request.dag_id,
        task_id=request.task_id,
        run_id=request.dag_run,
        map_index=request.map_index,
    )
    return bool(left == request.id)
