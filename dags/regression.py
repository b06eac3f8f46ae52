"""
## Did anything become worse?

Compares the latest runs of every experiment with earlier runs of the same experiment on the same class of machine,
metric by metric. Starts when the DAG `nightly` has published result tables, or by hand. The method is described in
`docs/reference/regressions.md`.

| step | what happens |
|---|---|
| compare | every metric of every experiment is judged, and the comparison recorded in `.aftershock/regressions/` |
| judge | once for each experiment: fails if it became worse, and says which metric, by how much, and where to look |

If a comparison is *unknown* (too few runs, or too much noise), `judge` does not fail. *Unknown* is never called *same*.

The step `compare` keeps a core busy. So it waits in the pool `aftershock_runs`, and disturbs no run that a night or
`reproduce` is measuring.
"""

from airflow.sdk import DAG, Param, get_current_context, task

from aftershock.airflow import regressing, tasks
from aftershock.airflow.assets import RESULT_TABLES
from aftershock.airflow.pool import RUNS_POOL

with DAG(
    dag_id="regression",
    description="Hold the latest runs of each experiment against earlier ones",
    doc_md=__doc__,
    schedule=list(RESULT_TABLES.values()),
    catchup=False,
    max_active_runs=1,
    params={
        "experiment": Param(
            None,
            type=["string", "null"],
            pattern="^[a-z0-9][a-z0-9-]{0,62}$",
            title="experiment",
            description_md="Compare only the runs of this experiment; left empty, those of all.",
        )
    },
    tags=["aftershock", "regression"],
    default_args={"owner": "aftershock", "retries": 0, "on_failure_callback": [tasks.note_error]},
) as dag:

    @task(pool=RUNS_POOL)
    def compare() -> list[regressing.Finding]:
        return regressing.compare(get_current_context()["params"]["experiment"])

    judge = task(map_index_template="{{ task.op_kwargs['finding']['experiment'] }}")(regressing.judge)
    judge.expand(finding=compare())
