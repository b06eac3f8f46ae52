"""What the DAG's tasks do: call one step each, and turn its outcome into Airflow's terms and a log that reads well.

Steps are imported when a task runs, never when the DAG file is parsed. A parameter that a task fills in is called
`run`, since Airflow keeps the name `run_id` for its own.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from aftershock import trigger_form
from experiments.errors import AftershockError

log = logging.getLogger(__name__)
ERROR = "error"  # the XCom key under which a failed task leaves its one-line reason for the teardown


def begin(params: dict[str, Any], dag_run: str) -> str:
    """Validate the trigger form's params as an experiment and open a run; returns the run id.

    Of a run on the command line the DAG run is not noted: it is gone with the command, which holds the run's lease.
    """
    from aftershock import lease, steps
    from results import store

    run_id = params.get("run_id")
    try:
        by_command = run_id is not None and lease.state_of(store.live_directory(run_id)) is lease.Lease.HELD
        return steps.begin(trigger_form.fold(params), run_id, None if by_command else dag_run)
    except AftershockError as error:
        raise AirflowFailException(str(error)) from None


def run_step(name: str, run: str) -> Any:
    """Run the step `name` of the run of that id; an error that a user can understand fails the task with that line."""
    from aftershock import steps

    log.info("%s ...", name)
    started = time.monotonic()
    try:
        outcome = getattr(steps, name)(run)
    except AftershockError as error:
        raise AirflowFailException(str(error)) from None
    log.info("%s done in %.1f s", name, time.monotonic() - started)
    return outcome


def note_error(context: Any) -> None:
    """Failure callback: say the reason in one line, and leave it where the teardown finds it."""
    reason = " ".join(str(context.get("exception")).split())
    log.error("%s failed: %s", context["ti"].task_id, reason)
    context["ti"].xcom_push(key=ERROR, value=reason)


def tear_down(run: str, ti: Any) -> str:
    """Destroy the run's cluster and publish the run, as failed if a task of this DAG run failed."""
    from aftershock import steps

    error = _first_error(ti)
    log.info("teardown: %s", error or "every step succeeded")
    return steps.teardown(run, error)


def _first_error(ti: Any) -> str | None:
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id]).get(ti.run_id, {})
    failed = [task_id for task_id, state in states.items() if state == "failed"]
    if not failed:
        return None
    reason = ti.xcom_pull(task_ids=failed[0], key=ERROR)
    return f"{failed[0]}: {reason or 'ended without an error of its own (killed, or marked failed by hand)'}"


def judge(run: str) -> None:
    """Log the verdicts of the published run, those that passed as a number.

    Fails when the run failed, or with check, observed and expected of each verdict that did.
    """
    from results import store

    published = store.finished(run)
    verdicts = published.table("verdicts").to_dict("records") if published.has("verdicts") else []
    for verdict in verdicts:
        if verdict["verdict"] != "pass":
            log.info("%-7s %s", verdict["verdict"], _sentence(verdict))
    log.info("%d of %d checks passed", sum(verdict["verdict"] == "pass" for verdict in verdicts), len(verdicts))
    if published.status()["state"] != "done":
        raise AirflowFailException(f"run {run} failed: {published.status()['error']}")
    failed = [_sentence(verdict) for verdict in verdicts if verdict["verdict"] == "fail"]
    if failed:
        raise AirflowFailException(f"{len(failed)} of {len(verdicts)} checks failed: {'; '.join(failed)}")


def _sentence(verdict: dict[str, Any]) -> str:
    return f"{verdict['check']}: observed {verdict['observed']}, expected {verdict['expected']}"
