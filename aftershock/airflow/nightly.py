"""The tasks of the DAG `nightly`: one run of the DAG `benchmark` for each cell of a matrix, one at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from aftershock.airflow import links, tasks, trigger_form, waiting_tasks
from aftershock.airflow.assets import RESULT_TABLES, RUNS
from results.runs.state import RunState

if TYPE_CHECKING:
    from experiments.spec import Experiment
    from results.runs.store import Run

log = logging.getLogger(__name__)
BENCHMARK, BEGIN = "benchmark", "begin"  # the DAG, and its first step
POLL_INTERVAL_S = 10

Cell = dict[
    str, Any
]  # what BenchmarkRun is given: `trigger_run_id`, and `conf`, the experiment by the trigger form's params


def cells(source: str, dag_run: str, attempt: int) -> list[Cell]:
    """The DAG runs that a matrix asks for; an attempt that is repeated asks for new ones."""
    from experiments import matrix

    with tasks.failures_on_one_line():
        return [cell(experiment, dag_run, attempt) for experiment in matrix.load(source)]


def cell(experiment: Experiment, dag_run: str, attempt: int) -> Cell:
    """The DAG run of `benchmark` that an attempt of a DAG run asks for."""
    return {
        "trigger_run_id": f"{dag_run}__{attempt}__{experiment.name}-{experiment.seed}",
        "conf": trigger_form.flatten(experiment),
    }


class BenchmarkRun(TriggerDagRunOperator):
    """Run the DAG `benchmark` once and wait for its end, without a worker; fails as the run does, with its words.

    A task that is cleared clears its DAG run, which opens a new run of the same experiment.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            trigger_dag_id=BENCHMARK,
            wait_for_completion=True,
            deferrable=True,
            reset_dag_run=True,
            fail_when_dag_is_paused=True,
            poke_interval=POLL_INTERVAL_S,
            openlineage_inject_parent_info=False,
            **kwargs,
        )

    def execute(self, context: Any) -> None:
        """Request the DAG run once no run goes on whose task was cleared: it would be measured beside that."""
        with tasks.failures_on_one_line():
            waiting_tasks.end_runs_of_earlier_tries()
        super().execute(context)

    def execute_complete(self, context: Any, event: tuple[str, dict[str, Any]]) -> str:
        """Called with the end of the DAG run; returns the id of the run."""
        (dag_run,) = event[1]["run_ids"]
        run = _runs_of({dag_run}).get(dag_run)
        if run is None:
            raise AirflowFailException(_no_run_of(dag_run))
        tasks.judge(run.run_id)
        if event[1][dag_run] != "success":  # marked so by hand
            where = links.dag_run_page(BENCHMARK, dag_run)
            raise AirflowFailException(f"the DAG run ended as {event[1][dag_run]}; {where}")
        return run.run_id


def publish(cells: list[Cell] | None, outlet_events: Mapping[Any, Any]) -> list[str]:
    """Say of each result table which runs of these cells have it, in the events of its asset; returns their ids.

    Skips when no run came to its end, so that nothing is scheduled on tables that are not there.
    """
    found = [run for run in _runs_of_cells(cells).values() if run.known_status().state == RunState.DONE]
    if not found:
        raise AirflowSkipException("no run came to its end")
    for table, asset in RESULT_TABLES.items():
        outlet_events[asset].extra = {RUNS: [run.run_id for run in found if run.has(table)]}
    return [run.run_id for run in found]


def judge(cells: list[Cell] | None) -> None:
    """The last word on a night: fails with what each run that is not good has against it."""
    if cells is None:
        raise AirflowFailException("the matrix could not be read; the task `cells` says why")
    runs = _runs_of_cells(cells)
    told = [_problem(cell["trigger_run_id"], runs) for cell in cells]
    bad = list(filter(None, told))
    log.info("%d of %d runs are good", len(cells) - len(bad), len(cells))
    if bad:
        raise AirflowFailException(f"{len(bad)} of {len(cells)} runs are not good: {'. '.join(bad)}")


def _problem(dag_run: str, runs: dict[str, Run]) -> str | None:
    if dag_run not in runs:
        return _no_run_of(dag_run)
    problem = tasks.problem(runs[dag_run])
    return problem and f"{runs[dag_run].run_id}: {problem}"


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


def _runs_of_cells(cells: list[Cell] | None) -> dict[str, Run]:
    return _runs_of({cell["trigger_run_id"] for cell in cells or []})


def _runs_of(dag_runs: set[str]) -> dict[str, Run]:
    """The finished runs of these DAG runs, of each that of its last try: one that was cleared has older runs, too."""
    from results.runs import store

    opened_by = {dag_run: opened(dag_run) for dag_run in dag_runs}
    return {
        dag_run: store.finished(run_id)
        for dag_run, run_id in opened_by.items()
        if run_id is not None and store.is_finished(run_id)
    }


def opened(dag_run: str) -> str | None:
    """The run that the first step of a DAG run of `benchmark` opened in its last try; to be asked within a task."""
    return _told_by_begin(dag_run, "return_value", "success")
