"""Which DAG runs of `benchmark` a task still waits for.

A task that is cleared, or ended by hand, waits no longer. Airflow leaves the DAG run that it requested as it is: its
run would go on, and the next one would be measured beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from airflow.sdk import get_current_context

from experiments.errors import BadInput, EnvironmentFailure
from experiments.waiting import wait_for

log = logging.getLogger(__name__)
# For each DAG: the tasks that list the DAG runs to request (by a cell, or a list of cells), and which task waits for
# each: a mapped one, in the order of the cells.
WAITING = {
    "nightly": {"cells": "run"},
    "reproduce": {"missing": "runs.run", "runs.follow_up": "runs.run_follow_up", "missing_then": "run_then"},
}
STATES = frozenset({"running", "deferred"})  # of a task that waits: at first it requests the DAG run
END_POLL_S, END_LIMIT_S = 1.0, 3600.0  # a step that cannot be interrupted ends first


def require_waiting_task(dag_run: str) -> None:
    """Raise `EnvironmentFailure` if a task requested this DAG run of `benchmark` and does not wait for it any more.

    To be called within a task. A DAG run that a person triggered is nobody else's to judge.
    """
    for dag_id, requester in _requesters(dag_run):
        states = _states(dag_id, requester)
        if states and states.get(_waiting(dag_id, requester, states).get(dag_run, "")) not in STATES:
            cause = f"no task waits for this run: DAG run {requester} of {dag_id} was cleared, or ended by hand"
            raise EnvironmentFailure(cause, "clear this DAG run to carry it out all the same")


def end_runs_of_earlier_tries(dag_id: str, requester: str) -> None:
    """End the live runs that earlier tries of a DAG run requested, and return once they are torn down.

    To be called within a task. What the present tries requested goes on, as does what a person has cleared.
    Raises `EnvironmentFailure` if a run cannot be aborted, or does not end.
    """
    from aftershock.run.abort import abort  # here, since the DAG file must parse fast
    from results.runs import store

    known = {run_id: store.live(run_id).known_status().dag_run or "" for run_id in store.all_live()}
    of_ours = {run_id for run_id, dag_run in known.items() if (dag_id, requester) in _requesters(dag_run)}
    if not of_ours:
        return
    present = _waiting(dag_id, requester, _states(dag_id, requester))
    for run_id in sorted(run_id for run_id in of_ours if known[run_id] not in present):
        with suppress(BadInput):  # it has ended meanwhile
            log.warning("%s, which an earlier try of this DAG run requested, %s", run_id, abort(run_id).outcome)
        _wait_for_the_end(run_id)


def _wait_for_the_end(run_id: str) -> None:
    from results.runs import store

    cause, remedy = f"run {run_id} was aborted, and is still live after {END_LIMIT_S:.0f} s", "look at its DAG run"
    wait_for(lambda: run_id not in store.all_live(), cause, remedy, interval_s=END_POLL_S, limit_s=END_LIMIT_S)


def _requesters(dag_run: str) -> list[tuple[str, str]]:
    """The DAG, and the DAG run, whose task may have requested a DAG run of that id (`nightly.cell` makes it)."""
    begin, attempt, label = (["", "", *dag_run.rsplit("__", 2)])[-3:]
    if not (begin and attempt.isdigit() and label):
        return []
    requester, _, task_id = begin.rpartition("__")
    listers = {name.rpartition(".")[2] for name in WAITING["reproduce"]}
    return [("nightly", begin), *([("reproduce", requester)] if requester and task_id in listers else [])]


def _states(dag_id: str, dag_run: str) -> dict[str, Any]:
    """The state of each task of a DAG run, of mapped ones as `TASK_INDEX`; none of a DAG run that is not there."""
    found = get_current_context()["ti"].get_task_states(dag_id=dag_id, run_ids=[dag_run])
    states: dict[str, Any] = found.get(dag_run, {})
    return states


def _waiting(dag_id: str, dag_run: str, states: dict[str, Any]) -> dict[str, str]:
    """By the id of each DAG run that the present tries of a DAG run listed: the task that is to wait for it.

    What a task of an earlier try listed is there until it begins again. But with the clearing it has lost its state.
    """
    return {
        cell["trigger_run_id"]: f"{waiting}_{index}"
        for lister, waiting in WAITING[dag_id].items()
        for index, cell in _listed(dag_id, dag_run, lister, states)
        if cell  # Airflow may have lost what a task returned
    }


def _listed(dag_id: str, dag_run: str, lister: str, states: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The cells that a task listed, and the index of the task that waits for each."""
    if states.get(lister) == "success":
        yield from enumerate(_returned(dag_id, dag_run, lister, -1) or [])
    for name, state in states.items():
        task_id, _, index = name.rpartition("_")
        if task_id == lister and index.isdigit() and state == "success":
            yield int(index), _returned(dag_id, dag_run, lister, int(index))


def _returned(dag_id: str, dag_run: str, task_id: str, map_index: int) -> Any:
    from airflow.sdk.execution_time.xcom import XCom

    return XCom.get_one(key="return_value", dag_id=dag_id, task_id=task_id, run_id=dag_run, map_index=map_index)
