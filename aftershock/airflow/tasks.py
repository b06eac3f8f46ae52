"""The tasks of the DAG `benchmark`: each calls one step, and turns its outcome into Airflow's terms and a readable log.

Steps are imported when a task runs, never when the DAG file is parsed. A parameter that a task fills in is called
`run`, since Airflow keeps the name `run_id` for its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from aftershock.airflow import links, trigger_form, waiting_tasks
from experiments import spec
from experiments.errors import AftershockError, EnvironmentFailure
from experiments.wording import on_one_line
from results.damage import Damaged
from results.runs import step_times
from results.runs.state import RunState
from results.summary.judged_checks import judged_checks
from results.verdict import Verdict

if TYPE_CHECKING:
    from results.runs.store import Run

log = logging.getLogger(__name__)
ERROR = "error"  # the XCom key under which a failed task leaves its one-line reason for the teardown
TEARDOWN = "teardown"  # the task that ends a run


@contextmanager
def failures_on_one_line() -> Iterator[None]:
    """Fail the task with the line of an error that a user can understand."""
    try:
        yield
    except AftershockError as error:
        raise AirflowFailException(str(error)) from None


def begin(params: dict[str, Any], dag_run: str, attempt: int = 1) -> str:
    """Validate the trigger form's params as an experiment and open a run; returns the run id.

    Fails if a task requested this DAG run and waits for it no more. A later attempt than the first is wanted by the
    person who cleared the DAG run.

    The log says how long the run will probably take. A run on the command line, whose lease the command holds, gets its
    experiment from the command. Its DAG run, which ends with the command, is not noted.
    """
    from aftershock.airflow import orchestrate
    from aftershock.run import lease, steps
    from results.runs import store

    run_id = params.get("run_id")
    with failures_on_one_line():
        if run_id is not None and lease.state_of(store.live_directory(run_id)) is lease.Lease.HELD:
            document = orchestrate.experiment_of(run_id)
            begun = steps.begin(document, run_id)
        else:
            document = trigger_form.fold(params)
            waiting_tasks.require_waiting_task(dag_run, attempt)
            _end_earlier(dag_run)
            begun = steps.begin(document, run_id, dag_run, attempt)
    experiment = spec.validate(document)
    takes = step_times.in_words(step_times.whole_s(experiment))
    log.info("run %s takes %s, %g s of them measured", begun, takes, experiment.window_s)
    return begun


def _end_earlier(dag_run: str) -> None:
    """End the live runs of this DAG run: if it is cleared amid a run, its teardown knows only the new one."""
    from aftershock.run import steps
    from results.runs import store

    for run_id in store.all_live():
        if store.live(run_id).known_status().dag_run == dag_run:
            log.warning("run %s is ended: its DAG run was cleared", run_id)
            steps.teardown(run_id, "its DAG run was cleared")


def run_step(name: str, run: str) -> None:
    """Run the step `name` of the run of that id; an error that a user can understand fails the task with that line.

    What the step returns stays here: Airflow would log it and show it to its viewers, and a handle has the run's token.
    """
    from aftershock.run import steps
    from results.runs import store

    log.info("%s ...", name)
    started = time.monotonic()
    with failures_on_one_line():
        if run not in store.all_live():
            raise EnvironmentFailure(f"run {run} is over", "clear the whole DAG run, or trigger the DAG again")
        getattr(steps, name)(run)
    log.info("%s done in %.1f s", name, time.monotonic() - started)


def note_error(context: Any) -> None:
    """Failure callback: say the reason in one line, and leave it where the teardown finds it."""
    reason = on_one_line(" ".join(str(context.get("exception")).split()))
    log.error("%s failed: %s", context["ti"].task_id, reason)
    context["ti"].xcom_push(key=ERROR, value=reason)


def tear_down(run: str, ti: Any) -> str | None:
    """Destroy the run's cluster and publish the run, as failed if a step of this DAG run failed or did not happen."""
    from aftershock.run import steps

    error = _first_error(ti)
    log.info("teardown: %s", error or "every step succeeded")
    return steps.teardown(run, error)


def _first_error(ti: Any) -> str | None:
    """Why the run is not good, by its steps in their order.

    A DAG run that was ended by hand has steps that were skipped, though none has failed. What a later task made of an
    earlier teardown that failed does not count: teardown can be cleared alone.
    """
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id]).get(ti.run_id, {})
    for step in step_times.STEPS:
        if step == TEARDOWN or (state := states.get(step, "success")) == "success":
            continue
        if state == "failed":
            reason = ti.xcom_pull(task_ids=step, key=ERROR)
            return f"{step}: {reason or 'ended without an error of its own (killed, or marked failed by hand)'}"
        return f"{step}: did not happen ({state or 'never scheduled'}): the DAG run was ended by hand"
    return None


def judge(run: str) -> None:
    """Log the verdicts of the published run (of those that passed, only how many); fails if the run is not good."""
    from results.runs import store

    published = store.finished(run)
    checks = judged_checks(published)
    for each in checks:
        if each.verdict is not Verdict.PASS:
            log.info("%-7s %s", each.verdict, each.sentence)
    log.info("%d of %d checks passed", sum(each.verdict is Verdict.PASS for each in checks), len(checks))
    if against := problem(published):
        raise AirflowFailException(against)


def problem(run: Run) -> str | None:
    """What there is against a finished run: that it failed, or check, observed and expected of each verdict that did.

    Ends with the address of the run's page, if an Airflow that is served has run it.
    """
    try:
        status, checks = run.status(), judged_checks(run)
    except (Damaged, FileNotFoundError) as damage:
        return f"run {run.run_id} cannot be read: {damage}"
    where = f"; {links.run_page(run.run_id)}" if status.dag_run else ""
    if status.state != RunState.DONE:
        return f"run {run.run_id} failed: {status.error}{where}"
    failed = [each.sentence for each in checks if each.verdict is Verdict.FAIL]
    return f"{len(failed)} of {len(checks)} checks failed: {'; '.join(failed)}{where}" if failed else None
