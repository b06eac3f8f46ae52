"""Runs the batch job of `spark_jobs/tables` with spark-submit, on all cores of this machine.

The stages of a live run share one Spark session, which may start before the first of them is ordered.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aftershock.run.lease import lease
from aftershock.run.live_run import complaint
from experiments.errors import EnvironmentFailure
from experiments.waiting import Deadline
from infra import launch, tokens
from infra.cluster import Handle
from infra.launch import DAEMON, PYTHONPATH, REPOSITORY, for_the_controller
from infra.services import spark
from infra.services.jars import ensure_jars
from infra.services.jvm import find_java
from journal.events.services import GENERATOR, RecordsSent
from journal.reader import events
from results.runs.store import Run
from spark_jobs.tables.orders import Orders

HOST, JOB = "controller", "tables"  # in the mark of the job
LOG = f"{JOB}.log"  # in raw/logs
LIMIT_S = 1800
POLL_S = 0.1
LIVENESS_POLL_S = 1.0  # between checks whether the job runs; each takes CPU time from the job
# A job of fewer records mostly starts, and the second JIT compiler takes more CPU time than it saves
# (docs/lab/run-time.md#the-batch-job).
MANY_RECORDS = 500_000


def start(run: Run, owner: Handle) -> None:
    """Start the job of a live run, unless it runs: it then awaits orders.

    The job carries the mark of `owner`, the run's cluster: destroying that ends a job whose caller has died, too.
    """
    if not _runs(owner):
        command, log = _command(run), _log(run)
        variables = _environment() | for_the_controller(owner.token, owner.root, JOB)
        launch.spawn(command, run.root.parent, log, variables)


def carry_out(stage: str, run: Run, *arguments: str, owner: Handle) -> None:
    """Have the job of a live run carry out a stage, and wait for it; raises `EnvironmentFailure` when it fails."""
    orders = _orders(run)
    orders.give(stage, list(arguments))
    start(run, owner)
    deadline, next_look = Deadline(LIMIT_S), Deadline(LIVENESS_POLL_S)
    while not orders.finished(stage):
        if next_look.passed:
            next_look = Deadline(LIVENESS_POLL_S)
            if not _runs(owner) and not orders.finished(stage):
                raise _failure(stage, run)
        if deadline.passed:
            raise _too_slow(stage)
        time.sleep(POLL_S)


def build_again(run: Run) -> None:
    """Build the tables of a run that is over, whose cluster is gone; raises `EnvironmentFailure` when that fails."""
    command, log, stage = _command(run), _log(run), "build"
    _orders(run).give(stage, [])
    try:
        with _owner_without_hosts(run) as owner, log.open("wb") as output:
            subprocess.run(
                command,
                cwd=run.root.parent,
                stdout=output,
                stderr=output,
                timeout=LIMIT_S,
                env=_environment() | for_the_controller(owner.token, owner.root, JOB),
                check=True,
            )
    except subprocess.TimeoutExpired:
        raise _too_slow(stage) from None
    except subprocess.CalledProcessError:
        raise _failure(stage, run) from None


@contextmanager
def _owner_without_hosts(run: Run) -> Iterator[Handle]:
    """A cluster in which only the job is: if its caller is killed, `aftershock clean` finds the job and ends it.

    Its lease tells that the caller lives.
    """
    live_directory = run.root.parent
    root, token = live_directory / "rebuild", tokens.new("local")
    with lease(live_directory):
        root.mkdir(exist_ok=True)
        owner = Handle(run.run_id, "local", token, str(root))
        owner.save()
        yield owner


def _runs(owner: Handle) -> bool:
    """A process has no mark for a moment while it begins to execute another program, so a second look decides."""
    mark = f"{owner.token}/{HOST}"
    if JOB in launch.running(mark):
        return True
    time.sleep(POLL_S)
    return JOB in launch.running(mark)


def _command(run: Run) -> list[str]:
    connector = ":".join(str(jar) for jar in ensure_jars().connector)
    program = REPOSITORY / "spark_jobs" / "tables" / "job.py"
    conf = {
        "spark.authenticate": "true",  # of a program that is its own cluster, Spark makes the secret itself
        "spark.python.daemon.module": DAEMON,
        "spark.ui.enabled": "false",
        "spark.driver.extraClassPath": connector,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
    }
    words = (str(run.root), str(_orders(run).folder))
    java = spark.COLLECTOR if _records(run) >= MANY_RECORDS else spark.MOSTLY_STARTING
    return spark.submit_command("local[*]", program, *words, memory="1536m", java=java, conf=conf)


def _records(run: Run) -> int:
    """How many records the generator has sent, as far as it has told."""
    told = events(run.raw / "generator.jsonl", GENERATOR)
    return max((event.sent for event in told if isinstance(event, RecordsSent)), default=0)


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "SPARK_HOME": str(spark.home()),
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": PYTHONPATH,
    }


def _orders(run: Run) -> Orders:
    """Beside the result, which they are no part of."""
    return Orders(run.root.parent / JOB)


def _log(run: Run) -> Path:
    path = run.raw / "logs" / LOG
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _failure(stage: str, run: Run) -> EnvironmentFailure:
    return EnvironmentFailure(f"the job {stage} failed ({complaint(run.raw, f'logs/{LOG}')})", f"see {LOG} of the run")


def _too_slow(stage: str) -> EnvironmentFailure:
    return EnvironmentFailure(f"the job {stage} took more than {LIMIT_S} s", f"see {LOG} of the run")
