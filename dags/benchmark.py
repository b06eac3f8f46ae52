"""
## One benchmark run

Provision a cluster, run a streaming workload on it, kill its hosts by a random schedule, measure what that cost, and
compare the measurement with the model's prediction.

In the **trigger form**, choose an experiment: an example, or a file of yours. Fill in only the fields that you want to
change: an empty field keeps the value of the experiment.

| step | what happens |
|---|---|
| begin | the experiment is checked; the run gets its id and its directory |
| provision | hosts are created (*teardown* removes them, even if a step in between fails) |
| deploy | broker, Spark and the query come up |
| start_load | the generator starts, in mode `sustainable` after a search for the rate; the query becomes steady |
| arm_faults | the fault plan is drawn from the seed and handed to the injector; the measurement window opens |
| observe | waits for the window to end, without holding a worker |
| stop, collect | the services end; their logs are gathered |
| tabulate, predict, validate, report | result tables, the model's prediction, verdicts, the report |
| teardown | the cluster is destroyed; the run is published as done or failed |
| judge | decides the DAG run: fails if a step or a check failed; its log names check, observed and expected |

Only *observe* is retried, because it only watches. The other steps act on a cluster that is being measured.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, XComArg, chain, get_current_context, task

from aftershock.airflow import links, tasks, trigger_form
from aftershock.airflow.observe import Observe

RUN = "{{ ti.xcom_pull(task_ids='begin') }}"


@task
def begin() -> str:
    """The first step: check the experiment and create the run; returns the run's id."""
    context = get_current_context()
    return tasks.begin(dict(context["params"]), context["dag_run"].run_id, context["ti"].try_number)


@task
def teardown(run: str) -> str | None:
    """Destroy the cluster and publish the run; runs even if other steps failed."""
    return tasks.tear_down(run, get_current_context()["ti"])


def step(name: str) -> XComArg:
    """A task of this name that carries out that step of the run."""
    return task(task_id=name)(tasks.run_step)(name, RUN)


with DAG(
    dag_id="benchmark",
    description="Run a streaming job, kill its hosts, compare what that cost with what the model predicts",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    max_active_runs=2,
    params={name: Param(**field) for name, field in trigger_form.fields().items()},
    tags=["aftershock", "benchmark"],
    default_args={"owner": "aftershock", "retries": 0, "on_failure_callback": [tasks.note_error]},
) as dag:
    # Airflow types what these calls return as less than what it is: results of tasks, each with its operator.
    opened: Any = begin().as_setup()
    provision: Any = step("provision").as_setup()
    observe = Observe(task_id="observe", experiment_run_id=RUN, retries=3, retry_delay=timedelta(seconds=5))
    closing = list(map(step, ("stop", "collect", "tabulate", "predict", "validate", "report")))
    chain(opened, provision, *map(step, ("deploy", "start_load", "arm_faults")), observe, *closing)
    # begin is a setup too: a provision that fails half-way still gets its teardown
    torn_down = teardown(RUN).as_teardown(setups=[opened, provision])
    # judge is a teardown as well: it always runs last, even after failed steps, and decides the state of the DAG run
    judge: Any = task(tasks.judge)(RUN).as_teardown(setups=opened, on_failure_fail_dagrun=True)
    judge.operator.operator_extra_links = (links.RunPage(),)
    closing[-1] >> torn_down >> judge

# A task has the DAG's params even so. Airflow would store a copy of the form's with each of them, and read all of these
# for every run.
for each in dag.tasks:
    each.params = {}
