"""
## A night of benchmark runs

Runs every experiment of a matrix (workloads x engines x protections x faults x seeds; a file in
`experiments/matrices/`) by the DAG `benchmark`, one after the other, so that no run disturbs another.

| step | what happens |
|---|---|
| cells | the matrix is read and checked, every cell of it as an experiment; a missed night is skipped as a whole |
| run | once for each cell: the DAG `benchmark` runs it; fails if the run or a check failed; the other cells still run |
| publish | emits an asset event for each result table, with the runs that have it; this starts the DAG `regression` |
| judge | decides the DAG run: fails if a run is not good, and says why for each, and where to look |

The DAG is paused until someone switches it on. Then it runs every night at 02:00 UTC, or at the times of the cron
expression in `AFTERSHOCK_NIGHT` (UTC). A night that cannot begin within half an hour, since Airflow is down or the DAG
is paused, is missed. It runs all the same if you clear its DAG run. The pool `aftershock_runs` has one slot, so runs
wait for each other.
"""

import os
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable, Param, get_current_context, task

from aftershock.airflow import nightly, tasks
from aftershock.airflow.assets import RESULT_TABLES
from aftershock.airflow.pool import RUNS_POOL

NIGHT = os.environ.get("AFTERSHOCK_NIGHT", "0 2 * * *")

with DAG(
    dag_id="nightly",
    description="Run a matrix of experiments, one after the other, and publish their result tables",
    doc_md=__doc__,
    # Left to itself, Airflow makes up for a first night of the last two hours and a half. This cannot keep it from
    # making up for a later one: `cells` does that.
    schedule=CronTriggerTimetable(NIGHT, timezone="UTC", run_immediately=timedelta(0)),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    params={
        "matrix": Param(
            "nightly",
            type="string",
            minLength=1,
            title="matrix",
            description_md="The name of a file in `experiments/matrices/`, or the path of one.",
        )
    },
    tags=["aftershock", "benchmark", "regression"],
    default_args={"owner": "aftershock", "retries": 0, "on_failure_callback": [tasks.note_error]},
) as dag:

    @task.short_circuit
    def cells() -> list[nightly.Cell]:
        context = get_current_context()
        if nightly.is_missed(context["dag_run"], context["ti"].try_number):
            return []
        asked = nightly.cells(context["params"]["matrix"])
        nightly.forget_requests(len(asked))
        return asked

    @task(trigger_rule="all_done", outlets=list(RESULT_TABLES.values()))
    def publish(cells: list[nightly.Cell] | None) -> list[str]:
        return nightly.publish(cells, get_current_context()["outlet_events"])

    @task(trigger_rule="all_done")
    def judge(cells: list[nightly.Cell] | None) -> None:
        nightly.judge(cells)

    asked: Any = cells()  # a task that gets it has the list
    runs = nightly.BenchmarkRun.partial(task_id="run", pool=RUNS_POOL, map_index_template=nightly.LABEL)
    runs.expand_kwargs(asked) >> publish(asked) >> judge(asked)
