"""The testbed's driver program: the coordinator, and the Spark stage whose tasks are the worker slots.

Run by spark-submit as `driver.py JOB.json JOURNAL.jsonl`. Spark places the tasks and retries those that it lost, as
often as it takes; the coordinator hears of a dead slot from its connection. Ends when the output is complete, or when
asked to (SIGTERM). The journal has what `runtime.server` and this program saw.
"""

from __future__ import annotations

import json
import secrets
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from experiments.errors import AftershockError, EnvironmentFailure
from infra.journal import Journal
from spark_jobs.dataflow.runtime.job import Job
from spark_jobs.dataflow.runtime.server import Server
from spark_jobs.dataflow.runtime.slot import Slot
from spark_jobs.dataflow.runtime.wire import Address
from spark_jobs.streaming.job import EXECUTOR_OPTIONS, live_executors

WATCH_S, ENDING_S = 0.1, 10.0
SETTINGS = {
    "spark.task.maxFailures": 2**31 - 1,
    "spark.locality.wait": "0s",
    "spark.ui.enabled": "false",
    "spark.executor.extraJavaOptions": EXECUTOR_OPTIONS,
}


class Stage(threading.Thread):
    """The one stage, in a thread of its own: `failure` has what ended it too early."""

    def __init__(self, spark: SparkSession, document: dict[str, Any], address: Address, token: str) -> None:
        super().__init__(name="stage", daemon=True)
        self._context, self._given = spark.sparkContext, (document, address, token)
        self._slots = document["slots"]
        self.failure: str | None = None

    def run(self) -> None:
        document, address, token = self._given

        def serve(task: int, _: Iterator[int]) -> Iterator[int]:
            Slot(Job.from_json(document), address, token, task, TaskContext.get().attemptNumber()).run()
            return iter((task,))

        try:
            self._context.parallelize(range(self._slots), self._slots).mapPartitionsWithIndex(serve).collect()
        except (Py4JError, PySparkException) as error:
            self.failure = str(error)[:2000]


class Watch:
    """Tells the journal of executors that come and go, and says when to stop."""

    def __init__(self, spark: SparkSession, stage: Stage, journal: Journal) -> None:
        self._spark, self._stage, self._journal = spark, stage, journal
        self._executors: set[str] = set()
        self._next_s, self._asked = 0.0, False

    def request_stop(self, *_: object) -> None:
        self._asked = True

    def stopping(self) -> bool:
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + WATCH_S
            self._compare(live_executors(self._spark))
        return self._asked or not self._stage.is_alive()

    def _compare(self, found: set[str]) -> None:
        for event, changed in (("executors-lost", self._executors - found), ("executors-up", found - self._executors)):
            if changed:
                self._journal.write(event, executors=sorted(changed))
        self._executors = found


def main() -> None:
    job_path, journal_path = map(Path, sys.argv[1:])
    document = json.loads(job_path.read_text(encoding="utf-8"))
    job, journal = Job.from_json(document), Journal(journal_path)
    journal.write("driver-started")
    spark = _session(job)
    token = secrets.token_hex(16)
    server = Server(job, token, spark.conf.get("spark.driver.host"), journal)
    stage = Stage(spark, document, server.address, token)
    watch = Watch(spark, stage, journal)
    signal.signal(signal.SIGTERM, watch.request_stop)
    stage.start()
    exit_code = 0
    try:
        server.serve(watch.stopping)
    except AftershockError as error:
        journal.write("failed", error=str(error))
        exit_code = error.exit_code
    server.close()
    stage.join(ENDING_S)
    if stage.failure is not None:
        journal.write("stage-failed", error=stage.failure)
        exit_code = EnvironmentFailure.exit_code
    journal.write("driver-stopped")
    spark.stop()
    sys.exit(exit_code)


def _session(job: Job) -> SparkSession:
    """Master, memory and class paths come from spark-submit."""
    builder = SparkSession.builder.appName(f"aftershock-dataflow-{job.run_id}")
    for name, value in SETTINGS.items():
        builder = builder.config(name, str(value))
    return builder.getOrCreate()


if __name__ == "__main__":
    main()
