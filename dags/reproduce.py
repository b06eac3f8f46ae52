"""
## One table or figure of a paper, computed again

Choose an id and press *Trigger*. The page *Reproductions* shows the result: a table, a plot, and a verdict for each
check. It is kept in `.aftershock/reproductions/` and replaces an earlier result of the same id.

| step | what happens |
|---|---|
| missing, runs.run | for measured tables: executes the runs that are missing, by the DAG `benchmark`, one at a time |
| runs.follow_up, runs.run_follow_up | executes a run that depends on the result of the run before it, at once |
| missing_then, run_then | executes the other runs that depend on earlier ones: at a load that these have found |
| reproduce | makes table, plot and verdicts; fails unless every check passed, and names those that did not |

In `utilization/table-1`, the run at T* comes at once after the run at the default interval, from which T* is computed.
So a change of the machine affects both.

Computed tables need no runs. Figures of `cec` need none either: the step `reproduce` measures an operator, for minutes.
A run that fails stops no other; checks that need it are unknown. One table or figure is made at a time, since several
share runs. All runs wait in the pool `aftershock_runs`, so that nothing disturbs a run that is being measured.

After an interruption, trigger the DAG again. If you mark a DAG run, or one of its tasks, as failed while a run of it is
being measured, that run is aborted. If you clear the DAG run, that run is aborted before the next one begins.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from airflow.sdk import DAG, Param, get_current_context, task, task_group

from aftershock.airflow import nightly, reproducing, tasks
from aftershock.airflow.pool import RUNS_POOL
from reproductions.ids import IDS

with DAG(
    dag_id="reproduce",
    description="Rebuild a table or figure of a paper: a table, a plot, a verdict",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    max_active_runs=1,  # the next one lists what is missing when the one before has run it
    params={
        "id": Param(
            IDS[0],
            type="string",
            enum=list(IDS),
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
    default_args={
        "owner": "aftershock",
        "retries": 0,
        "on_failure_callback": [tasks.note_error],
        "weight_rule": "upstream",  # a follow-up comes before the runs that wait,
        "priority_weight": 10,  # also before those of a night
    },
) as dag:

    @task
    def missing(*asked_before: Iterable[nightly.Cell] | nightly.Cell | None) -> list[nightly.Cell]:
        params = get_current_context()["params"]
        return reproducing.missing(params["id"], params["size"], *asked_before)

    @task(pool=RUNS_POOL, trigger_rule="all_done")
    def reproduce() -> dict[str, Any]:
        params = get_current_context()["params"]
        return reproducing.reproduce(params["id"], params["size"])

    @task(pool=RUNS_POOL, trigger_rule="all_done")
    def follow_up(conf: dict[str, Any], asked_before: list[nightly.Cell]) -> nightly.Cell:
        params = get_current_context()["params"]
        return reproducing.follow_up(params["id"], params["size"], conf, asked_before)

    run_of = partial(nightly.BenchmarkRun, pool=RUNS_POOL, map_index_template=nightly.LABEL)
    first: Any = missing()  # a task that gets it has the list

    @task_group
    def runs(run_label: str, conf: dict[str, Any]) -> None:
        told: Any = follow_up(conf, first)
        run_of(task_id="run", run_label=run_label, conf=conf) >> told
        run_of(task_id="run_follow_up", run_label=told["run_label"], conf=told["conf"])

    all_first = runs.expand_kwargs(first)
    followed: Any = dag.get_task("runs.follow_up").output
    then: Any = missing.override(task_id="missing_then", trigger_rule="all_done")(first, followed)
    all_first >> then
    rest = nightly.BenchmarkRun.partial(task_id="run_then", pool=RUNS_POOL, map_index_template=nightly.LABEL)
    rest.expand_kwargs(then) >> reproduce()
