"""
## One table or figure of a paper, computed again

Choose an id and press *Trigger*. What comes of it (a table, a plot, a verdict for each check) is shown by the page
*Reproductions* and kept in `.aftershock/reproductions/`; an earlier result of the same id is replaced.

| step | what happens |
|---|---|
| reproduce | table, plot and verdicts are made; fails when a check failed, naming it, what was observed and expected |

It waits for the pool `aftershock_runs`, so that its computing does not disturb a run that is being measured.
"""

from airflow.sdk import DAG, Param, get_current_context, task

from aftershock import reproducing, tasks
from aftershock.pool import RUNS_POOL

with DAG(
    dag_id="reproduce",
    description="Rebuild a table or figure of a paper: a table, a plot, a verdict",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    params={
        "id": Param(
            reproducing.IDS[0],
            type="string",
            enum=list(reproducing.IDS),
            title="table or figure",
            description_md="The paper, and its table or figure; `docs/reproductions.md` says what each shows.",
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

    @task(pool=RUNS_POOL)
    def reproduce() -> dict:
        params = get_current_context()["params"]
        return reproducing.reproduce(params["id"], params["size"])

    reproduce()
