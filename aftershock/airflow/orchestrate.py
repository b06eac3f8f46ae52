"""Runs the benchmark DAG from the command line, and shows its progress.

Each run gets a metadata database of its own, a copy of a migrated one: runs at the same time share no lock, and a
scheduler that serves the web page does not see their tasks, which it would otherwise start a second time.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from aftershock.airflow import signals
from aftershock.airflow.environment import (
    DATABASE_VARIABLE,
    airflow_home,
    airflow_program,
    ensure_database,
    environment,
    sqlite_url,
)
from aftershock.run.lease import lease, lease_path
from experiments import spec
from experiments.errors import EnvironmentFailure
from experiments.wording import on_one_line
from results.runs import store

OURS = (
    "aftershock",
    "chaos",
    "experiments",
    "infra",
    "journal",
    "models",
    "results",
    "spark_jobs",
    "testbed",
    "workloads",
)
LOGS_VARIABLE = "AIRFLOW__LOGGING__BASE_LOG_FOLDER"
POLL_S = 0.2


def run(experiment: spec.Experiment) -> store.Run:
    """Run an experiment through the benchmark DAG, and return its published run, done or failed.

    The cluster is torn down in every case. Raises `BadInput` or `EnvironmentFailure` if this machine cannot run the
    experiment, or if no run was published.
    """
    from aftershock.run import admission, steps

    admission.check(experiment)
    run_id = steps.new_run_id(experiment)
    print(f"run {run_id}", file=sys.stderr)
    reason = "interrupted before its end"
    try:
        status = run_dag(experiment, run_id)
        reason = f"Airflow ended with status {status} before the run did"
    finally:
        with signals.ignored():
            steps.teardown(run_id, reason)
    if not store.is_finished(run_id):
        raise EnvironmentFailure(f"Airflow ended with status {status} before the run began", f"see {log_file(run_id)}")
    return store.finished(run_id)


def run_dag(experiment: spec.Experiment, run_id: str) -> int:
    """Run the DAG `benchmark` on an experiment; returns 0, or another status when the DAG run failed.

    The tasks' own lines go to standard error as they come, everything to `log_file(run_id)`. A signal to end
    (`KeyboardInterrupt`) and any error here, such as that nobody reads standard error any more, go on once the run is
    stopped and torn down. If this process is killed outright, the DAG run goes on by itself to its end, teardown
    included.
    """
    conf = json.dumps({"run_id": store.check_run_id(run_id)})
    command = [airflow_program(), "dags", "test", "benchmark", "--conf", conf]
    with (
        lease(store.live_directory(run_id)) as held,
        _own_database(run_id) as variables,
        _handed_over(run_id, experiment),
        log_file(run_id).open("w+", encoding="utf-8") as log,
    ):
        print(f"the full log is {log.name}", file=sys.stderr)
        with signals.interrupting():
            child = subprocess.Popen(
                command,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[held],
            )
            try:
                _follow(child, log_file(run_id), run_id)
            except BaseException as ended:
                is_wanted = isinstance(ended, KeyboardInterrupt | BrokenPipeError)
                _stop(child, run_id, "interrupted" if is_wanted else f"{type(ended).__name__}: {ended}")
                raise
        status = signals.status_of(child) or 0
        if status < 0:
            _stop(child, run_id, f"Airflow was ended by signal {-status}")
        return child.wait()


def log_file(run_id: str) -> Path:
    """The full log of a run from the command line, Airflow's own lines included."""
    path = store.home() / "logs" / f"{store.check_run_id(run_id)}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def experiment_of(run_id: str) -> Any:
    """The document of the experiment that the command of that run executes; for the process to which it is handed."""
    return store.read_json(_experiment_file(run_id))


def _experiment_file(run_id: str) -> Path:
    return _databases() / f"{run_id}.json"


@contextmanager
def _handed_over(run_id: str, experiment: spec.Experiment) -> Iterator[None]:
    """Within, `experiment_of` reads the experiment. Linux limits an argument to 128 KiB, some 700 listed faults."""
    path = _experiment_file(run_id)
    store.write_json(path, experiment.model_dump(mode="json"))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _own_database(run_id: str) -> Iterator[dict[str, str]]:
    from aftershock.run import steps

    folder = _databases()
    folder.mkdir(exist_ok=True)
    template, database = folder / "template.db", folder / f"{run_id}.db"
    variables = environment() | {"AIRFLOW__LOGGING__JSON_LOGS": "True"}
    ensure_database(variables | {DATABASE_VARIABLE: sqlite_url(template)})
    shutil.copyfile(template, database)
    own = {DATABASE_VARIABLE: sqlite_url(database), LOGS_VARIABLE: str(folder / f"{run_id}.logs")}
    own |= {steps.ONE_PROCESS: "yes"}  # so does `airflow dags test`
    try:
        yield variables | own
    finally:
        _drop_database(run_id)


def forget(run_id: str) -> None:
    """Remove what the command of a run that is over has left."""
    _drop_database(store.check_run_id(run_id))
    _experiment_file(run_id).unlink(missing_ok=True)
    lease_path(store.live_directory(run_id)).unlink(missing_ok=True)


def _databases() -> Path:
    return airflow_home() / "command-line"


def _drop_database(run_id: str) -> None:
    """Remove the run's database, and the logs that Airflow keeps of its tasks: all of it is in `log_file`, too."""
    for leftover in _databases().glob(f"{run_id}.db*"):
        leftover.unlink(missing_ok=True)
    store.discard(_databases() / f"{run_id}.logs")


def _follow(child: subprocess.Popen[bytes], path: Path, run_id: str) -> None:
    """Show what the child writes to its log until it ends, and how far the run is; it may outlive its reader."""
    from aftershock.airflow.terminal_progress import TerminalProgress

    with path.open(encoding="utf-8", errors="replace") as log, TerminalProgress(run_id) as progress:
        rest = ""
        while True:
            ended = signals.status_of(child) is not None
            *lines, rest = (rest + log.read()).split("\n")
            for message in filter(None, map(readable, lines)):
                progress.line(message)
            if ended:
                return
            progress.look()
            time.sleep(POLL_S)


def readable(line: str) -> str | None:
    """`HH:MM:SS message` of a JSON log line that the project wrote; None for any other line, Airflow's own included."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or str(record.get("logger", "")).partition(".")[0] not in OURS:
        return None
    return on_one_line(f"{str(record.get('timestamp', ''))[11:19]} {record.get('event', '')}")


def _stop(child: subprocess.Popen[bytes], run_id: str, reason: str) -> None:
    from aftershock.run import steps

    with signals.ignored():
        signals.signal_group(child, signal.SIGKILL)  # Airflow's test run has no orderly end; the teardown does
        child.wait()
        with suppress(OSError):  # the terminal may be closed, and a reader of the output may have died
            print(f"{reason}: tearing the run down ...", file=sys.stderr, flush=True)
        steps.teardown(run_id, reason)
