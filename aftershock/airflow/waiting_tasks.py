"""Which DAG runs of `benchmark` a task still waits for.

A task that is cleared, or ended by hand, waits no longer. Airflow leaves the DAG run that it requested as it is: its
run would go on, and the next one would be measured beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
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
WAITS = frozenset({"running", "deferred"})  # states of a task that waits: at first it requests the DAG run
OVER = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})  # states of one that has waited
UNLISTED = "unlisted"  # in place of a state: no task is to wait
END_POLL_S, END_LIMIT_S = 1.0, 3600.0  # a step that cannot be interrupted ends first


def require_waiting_task(dag_run: str) -> None:
    """Raise `EnvironmentFailure` if a task requested this DAG run of `benchmark` and does not wait for it any more.

    To be called within a task. A DAG run that a person triggered is nobody else's to judge.
    """
    for requester in _requesters(dag_run):
        if requester.is_known and requester.state_of_the_task_for(dag_run) not in WAITS:
            where = f"DAG run {requester.dag_run} of {requester.dag_id}"
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
        dag_run = store.live(run_id).known_status().dag_run or ""
        known = [requester for requester in _requesters(dag_run) if requester.is_known]
        if known and all(each.state_of_the_task_for(dag_run) not in WAITS | OVER for each in known):
            with suppress(BadInput):  # it has ended meanwhile
                log.warning("%s, whose task was cleared, %s", run_id, abort(run_id).outcome)
            _wait_for_the_end(run_id)


def _wait_for_the_end(run_id: str) -> None:
    from results.runs import store

    cause, remedy = f"run {run_id} was aborted, and is still live after {END_LIMIT_S:.0f} s", "look at its DAG run"
    wait_for(lambda: run_id not in store.all_live(), cause, remedy, interval_s=END_POLL_S, limit_s=END_LIMIT_S)


def _requesters(dag_run: str) -> Iterator[Requester]:
    """The DAG runs whose tasks may have requested a DAG run of that id, which `nightly.cell` makes."""
    begin, attempt, label = (["", "", *dag_run.rsplit("__", 2)])[-3:]
    if not (begin and attempt.isdigit() and label):
        return
    yield Requester("nightly", begin)
    requester, _, task_id = begin.rpartition("__")
    if requester and task_id in {name.rpartition(".")[2] for name in WAITING["reproduce"]}:
        yield Requester("reproduce", requester)


@dataclass(frozen=True)
class Requester:
    """A DAG run of a DAG whose tasks request runs and wait for them; to be asked within a task."""

    dag_id: str
    dag_run: str

    @property
    def is_known(self) -> bool:
        """Whether there is such a DAG run."""
        return bool(self._states)

    def state_of_the_task_for(self, dag_run: str) -> str | None:
        """The state of the task that is to wait for a DAG run which the present tries list; `UNLISTED` for another one.

        What a task of an earlier try listed is there until it begins again. But with the clearing it has lost its
        state.
        """
        for lister, waiting in WAITING[self.dag_id].items():
            for index, cell in self._listed(lister):
                if cell and cell["trigger_run_id"] == dag_run:  # Airflow may have lost what a task returned
                    return self._states.get(f"{waiting}_{index}")
        return UNLISTED

    @cached_property
    def _states(self) -> dict[str, Any]:
        """The state of each task, of mapped ones as `TASK_INDEX`."""
        found = get_current_context()["ti"].get_task_states(dag_id=self.dag_id, run_ids=[self.dag_run])
        states: dict[str, Any] = found.get(self.dag_run, {})
        return states

    def _listed(self, lister: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """The cells that a task listed, and the index of the task that waits for each."""
        if self._states.get(lister) == "success":
            yield from enumerate(self._returned(lister, -1) or [])
        for name, state in self._states.items():
            task_id, _, index = name.rpartition("_")
            if task_id == lister and index.isdigit() and state == "success":
                yield int(index), self._returned(lister, int(index))

    def _returned(self, task_id: str, map_index: int) -> Any:
        from airflow.sdk.execution_time.xcom import XCom

        return XCom.get_one(
            key="return_value", dag_id=self.dag_id, task_id=task_id, run_id=self.dag_run, map_index=map_index
        )
