"""
## One table or figure of a paper, computed again

Choose an id and press *Trigger*. The result (a table, a plot, a verdict for each check) is shown by the page
*Reproductions* and kept in `.aftershock/reproductions/`; an earlier result of the same id is replaced.

| step | what happens |
|---|---|
| missing, run | of what is measured: the runs that are not there yet, each by the DAG `benchmark`, one at a time |
| missing_then, run_then | runs that could not be told before those: at a load or interval that the first have found |
| reproduce | table, plot and verdicts are made; fails unless every check passed, naming those that did not |

Of `utilization/table-1` these are the runs at T*. So here they all come after those at the default interval;
`aftershock reproduce` runs each right after the one that tells its T*.

What is computed needs no runs. Figures of `cec` need none either: step `reproduce` measures an operator, for minutes.
A run that fails stops no other; what it would have shown is unknown. One table or figure is made at a time, since
several share runs. All wait in the pool `aftershock_runs`, so that nothing disturbs a run that is being measured; after
an interruption, trigger it again.
"""

from airflow.sdk import DAG, Param, get_current_context, task

from aftershock.airflow import nightly, reproducing, tasks
from aftershock.airflow.pool import RUNS_POOL

with DAG(
    dag_id="reproduce",
    description="Rebuild a table or figure of a paper: a table, a plot, a verdict",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    max_active_runs=1,  # the next one lists what is missing when the one before has run it
    params={
        "id": Param(
            reproducing.IDS[0],
            type="string",
            enum=list(reproducing.IDS),
            title="table or figure",
            description_md="The paper, and its table or figure; see `docs/reference/reproductions.md`.",
        ),
        "size": Param(
            None,
            type=["integer", "null"],
            minimum=1,
            title="size",
            description_md="How large, for those that can be computed in part; left empty, the default of each.",
        ),
    },
    tags=["aftershock", "reproduction"],
    default_args={"owner": "aftershock", "retries": 0, "on_failure_callback": [tasks.note_error]},
) as dag:

    @task
    def missing(asked_before: list[nightly.Cell] | None) -> list[nightly.Cell]:
        context = get_current_context()
        params, task_instance = context["params"], context["ti"]
        name = f"{context['dag_run'].run_id}__{task_instance.task_id}"
        return reproducing.missing(params["id"], params["size"], name, task_instance.try_number, asked_before)

    @task(pool=RUNS_POOL, trigger_rule="all_done")
    def reproduce() -> dict:
        params = get_current_context()["params"]
        return reproducing.reproduce(params["id"], params["size"])

    def run(task_id: str, asked: list[nightly.Cell]):
        label = "{{ task.trigger_run_id.split('__')[-1] }}"
        started = nightly.BenchmarkRun.partial(task_id=task_id, pool=RUNS_POOL, map_index_template=label)
        return started.expand_kwargs(asked)

    first = missing([])
    then = missing.override(task_id="missing_then", trigger_rule="all_done")(first)
    run("run", first) >> then
    run("run_then", then) >> reproduce()
