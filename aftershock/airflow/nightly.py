"""The tasks of the DAG `nightly`: one run of the DAG `benchmark` for each cell of a matrix, one at a time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.providers.standard.triggers.external_task import DagStateTrigger
from airflow.sdk import DagRunState, get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferralError

from aftershock.airflow import links, tasks, trigger_form, waiting_tasks
from aftershock.airflow.assets import RESULT_TABLES, RUNS
from aftershock.airflow.dag_run_ids import BENCHMARK, Request
from results.runs.state import RunState

if TYPE_CHECKING:
    from airflow.sdk.types import OutletEventAccessorsProtocol

    from experiments.spec import Experiment
    from results.runs.store import Run

log = logging.getLogger(__name__)
SCHEDULED = "scheduled"  # the type of a DAG run that the schedule asked for
BEGIN = "begin"  # the first step of a DAG run of `benchmark`
RUN = "run"  # the mapped task of the DAG `nightly` that has a run for each cell
LABEL = "{{ task.run_label }}"  # what names a mapped `BenchmarkRun` in Airflow
POLL_INTERVAL_S = 10
MOST_LATE = timedelta(minutes=30)  # for a night to begin: after that it might be a working day

# What BenchmarkRun is given: `run_label`, the name and the seed of an experiment, and `conf`, the experiment by the
# trigger form's params.
Cell = dict[str, Any]


def is_missed(dag_run: Any, attempt: int) -> bool:
    """Whether a night that the schedule asked for is over: Airflow was down at its time, or the DAG was paused.

    Airflow makes up for the last such night as soon as it can. A night that a person triggered, or has cleared (a later
    `attempt` of its first task), is none.
    """
    late = datetime.now(UTC) - dag_run.run_after
    if dag_run.run_type != SCHEDULED or attempt > 1 or late <= MOST_LATE:
        return False
    log.warning("this night was due %s ago: it is skipped; to run it all the same, clear its DAG run", late)
    return True


def cells(source: str) -> list[Cell]:
    """The runs that a matrix asks for."""
    from experiments import matrix

    with tasks.failures_on_one_line():
        return list(map(cell, matrix.load(source)))


def forget_requests(count: int) -> None:
    """Have what an earlier try of this night requested count no more, if the night was cleared.

    A task that is ended by hand before it begins again requests nothing, and Airflow keeps what its earlier try left.
    To be called within the first task of a night with `count` cells: no other has begun again yet.
    """
    from airflow.sdk.execution_time.xcom import XCom

    ti, key = get_current_context()["ti"], waiting_tasks.REQUESTED
    if ti.try_number == 1:
        return
    for index, dag_run in enumerate(requested(count)):
        if dag_run is not None:
            XCom.delete(key=key, task_id=RUN, dag_id=ti.dag_id, run_id=ti.run_id, map_index=index)


def cell(experiment: Experiment) -> Cell:
    """The run of an experiment that a task is to request."""
    return {"run_label": f"{experiment.name}-{experiment.seed}", "conf": trigger_form.flatten(experiment)}


class BenchmarkRun(TriggerDagRunOperator):
    """Run the DAG `benchmark` once and wait for its end, without a worker; fails as the run does, with its words.

    A task that is cleared requests another DAG run, which opens a new run of the same experiment.

    run_label  the name and the seed of the experiment, for people
    """

    template_fields: Sequence[str] = (*TriggerDagRunOperator.template_fields, "run_label")

    def __init__(self, *, run_label: str, **kwargs: Any) -> None:
        super().__init__(
            trigger_dag_id=BENCHMARK,
            wait_for_completion=True,
            deferrable=True,
            reset_dag_run=False,  # only a person clears a DAG run; one that is there already fails the task
            fail_when_dag_is_paused=True,
            poke_interval=POLL_INTERVAL_S,
            openlineage_inject_parent_info=False,
            **kwargs,
        )
        self.run_label = run_label

    def execute(self, context: Any) -> None:
        """Request the DAG run once no run goes on for which no task waits: it would be measured beside that.

        The id of the DAG run is told before it is requested: its first step asks for it.
        """
        with tasks.failures_on_one_line():
            waiting_tasks.end_runs_without_a_task()
        ti = context["ti"]
        request = Request.by(ti, self.run_label)
        self.trigger_run_id = request.id
        ti.xcom_push(key=waiting_tasks.REQUESTED, value=request.id)
        super().execute(context)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """Called at the end of the wait. If Airflow's trigger failed, the DAG run goes on, and is waited for anew."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralError as failed:
            dag_run = Request.by(context["ti"], self.run_label).id
            log.warning("%s while DAG run %s was waited for", failed, dag_run)
        state, ends = context["ti"].get_dagrun_state(BENCHMARK, dag_run), [*self.allowed_states, *self.failed_states]
        if state in ends:
            return self.execute_complete(context, ("", {"run_ids": [dag_run], dag_run: DagRunState(state).value}))
        trigger = DagStateTrigger(BENCHMARK, ends, run_ids=[dag_run], poll_interval=POLL_INTERVAL_S)
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Any, event: tuple[str, dict[str, Any]]) -> str:
        """Called with the end of the DAG run; returns the id of the run."""
        (dag_run,) = event[1]["run_ids"]
        run = _run_of(dag_run)
        if run is None:
            raise AirflowFailException(_no_run_of(dag_run))
        tasks.judge(run.run_id)
        if event[1][dag_run] != "success":  # marked so by hand
            where = links.dag_run_page(BENCHMARK, dag_run)
            raise AirflowFailException(f"the DAG run ended as {event[1][dag_run]}; {where}")
        return run.run_id


def publish(cells: list[Cell] | None, outlet_events: OutletEventAccessorsProtocol) -> list[str]:
    """Say of each result table which runs of these cells have it, in the events of its asset; returns their ids.

    Skips when no run came to its end, so that nothing is scheduled on tables that are not there.
    """
    runs = [_run_of(dag_run) for dag_run in requested(len(cells or []))]
    found = [run for run in runs if run and run.known_status().state == RunState.DONE]
    if not found:
        raise AirflowSkipException("no run came to its end")
    for table, asset in RESULT_TABLES.items():
        outlet_events[asset].extra = {RUNS: [run.run_id for run in found if run.has(table)]}
    return [run.run_id for run in found]


def judge(cells: list[Cell] | None) -> None:
    """The last word on a night: fails with what each run that is not good has against it."""
    if cells is None:
        raise AirflowFailException("the matrix could not be read; the task `cells` says why")
    told = [_problem(cell["run_label"], dag_run) for cell, dag_run in zip(cells, requested(len(cells)), strict=True)]
    bad = list(filter(None, told))
    log.info("%d of %d runs are good", len(cells) - len(bad), len(cells))
    if bad:
        raise AirflowFailException(f"{len(bad)} of {len(cells)} runs are not good: {'. '.join(bad)}")


def requested(count: int) -> list[str | None]:
    """The DAG run that each task `run` of this night has requested in its last try that began, None where none did.

    To be asked within a task of the night, which has `count` cells.
    """
    key, indexes = waiting_tasks.REQUESTED, range(count)
    asked: list[str | None] = get_current_context()["ti"].xcom_pull(task_ids=RUN, key=key, map_indexes=indexes)
    return asked


def _problem(label: str, dag_run: str | None) -> str | None:
    if dag_run is None:
        return f"{label}: its task ended before it requested a run"
    run = _run_of(dag_run)
    if run is None:
        return _no_run_of(dag_run)
    problem = tasks.problem(run)
    return problem and f"{run.run_id}: {problem}"


def _no_run_of(dag_run: str) -> str:
    return f"no run came of it ({refusal(dag_run) or 'it did not begin'}); {links.dag_run_page(BENCHMARK, dag_run)}"


def refusal(dag_run: str) -> str | None:
    """Why the first step of a DAG run of `benchmark` failed in its last try, if it did; to be asked within a task."""
    return _told_by_begin(dag_run, tasks.ERROR, "failed")


def _told_by_begin(dag_run: str, key: str, state: str) -> str | None:
    """What the first step of a DAG run left under a key, if it ended in this state.

    What an earlier try left is there until the step begins again, which it may never do: a DAG run that was cleared can
    be ended before. But with the clearing the step has lost its state.
    """
    from airflow.sdk.execution_time.xcom import XCom

    states = get_current_context()["ti"].get_task_states(dag_id=BENCHMARK, task_ids=[BEGIN], run_ids=[dag_run])
    if states.get(dag_run, {}).get(BEGIN) != state:
        return None
    left: str | None = XCom.get_one(key=key, dag_id=BENCHMARK, task_id=BEGIN, run_id=dag_run, map_index=-1)
    return left


def _run_of(dag_run: str | None) -> Run | None:
    """The finished run of a DAG run, that of its last try: one that was cleared has older runs, too."""
    from results.runs import store

    run_id = opened(dag_run) if dag_run else None
    return store.finished(run_id) if run_id and store.is_finished(run_id) else None


def opened(dag_run: str) -> str | None:
    """The run that the first step of a DAG run of `benchmark` opened in its last try; to be asked within a task."""
    return _told_by_begin(dag_run, "return_value", "success")
