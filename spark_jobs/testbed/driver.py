"""The testbed's driver program: the coordinator, and the Spark stage whose tasks are the worker slots.

Run by spark-submit as `driver.py JOB.json JOURNAL.jsonl [CALIBRATION.json]`. Spark places the tasks and retries those
that it lost, as often as it takes; the coordinator hears of a dead slot from its connection. Ends when the output is
complete; SIGTERM ends it at once. Once the file JOB.drain is there, the sources end where they are, and when all output
is published it waits to be stopped. With a third argument it first measures how fast the job is and writes that there,
unless that is there already. The journal has what `runtime.server` and this program saw.

If the program dies, another can be started with the same arguments: it goes on from the line that the first one has
written to the store, if the job names a file with the store's key.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from pyspark import TaskContext
from pyspark.sql import SparkSession

from experiments.errors import AftershockError, EnvironmentFailure
from experiments.waiting import poll_while
from journal.events.common import DriverStarted, DriverStopped, ExecutorsLost, Failed
from journal.events.testbed import ExecutorsUp, FellBack, Finished, Undeleted
from journal.reader import raw_entries
from journal.writer import Journal
from spark_jobs.streaming.job import EXECUTOR_OPTIONS, live_executors
from spark_jobs.testbed.calibration import calibrate
from testbed.runtime.job import Job
from testbed.runtime.network.secret import RunSecret
from testbed.runtime.network.wire import Address
from testbed.runtime.server.fallback import settled
from testbed.runtime.server.server import Server
from testbed.runtime.slot.slot import Slot, tell_failure
from testbed.stores.record_chain import TakenOver
from testbed.stores.store import ObjectStore

WATCH_S, ENDING_S = 0.1, 10.0
SETTINGS = {
    "spark.task.maxFailures": 2**31 - 1,
    "spark.locality.wait": "0s",
    "spark.ui.enabled": "false",
    "spark.executor.extraJavaOptions": EXECUTOR_OPTIONS,
    "spark.executorEnv.AFTERSHOCK_PRELOADED": "testbed.runtime.slot.slot testbed.runtime.job",  # `aftershock_guard`
}


class Stage(threading.Thread):
    """The one stage, in a thread of its own: `failure` has what ended it too early."""

    def __init__(self, spark: SparkSession, job: Job, address: Address, secret: RunSecret) -> None:
        super().__init__(name="stage", daemon=True)
        self._context, self._given = spark.sparkContext, (job.to_json(), address, secret)
        self._slots = job.slots + job.standby
        self.failure: str | None = None

    def run(self) -> None:
        """Run the stage to its end, or note what ended it."""
        document, address, secret = self._given

        def serve(task: int, _: Iterable[int]) -> Iterable[int]:
            try:
                attempt = cast(TaskContext, TaskContext.get()).attemptNumber()  # only the driver has no task context
                slot = Slot(Job.from_json(document), address, secret, task, attempt)
            except Exception as error:
                tell_failure(address, secret.token, error)
                raise
            slot.run()
            return iter((task,))

        try:
            self._context.parallelize(range(self._slots), self._slots).mapPartitionsWithIndex(serve).collect()
        except Exception as error:  # whatever it is: an error that only this thread knows would end the run as if done
            self.failure = f"{type(error).__name__}: {error}"[:2000]


class ExecutorWatch:
    """Tells the journal of executors that come and go, and says when to stop: when the stage is over, or when the
    program was asked to."""

    def __init__(self, spark: SparkSession, stage: Stage, server: Server, journal: Journal, asked: Asked) -> None:
        self._spark, self._stage, self._server, self._journal, self._asked = spark, stage, server, journal, asked
        self._executors: set[str] = set()
        self._next_s, self._draining = 0.0, False

    def stopping(self) -> bool:
        """Whether the program shall end now.

        Every `WATCH_S` it also journals changes of the executors, and passes on the order to drain.
        """
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + WATCH_S
            self._compare(live_executors(self._spark))
            if self._asked.to_drain and not self._draining:
                self._draining = True
                self._server.drain()
        return self._asked.to_stop or not self._stage.is_alive()

    def _compare(self, found: set[str]) -> None:
        for kind, changed in ((ExecutorsLost, self._executors - found), (ExecutorsUp, found - self._executors)):
            if changed:
                self._journal.record(kind(tuple(sorted(changed))))
        self._executors = found


class Asked:
    """What the program was asked: to stop, by a signal, or to let everything come out first, by a file.

    A signal could not ask for that: it reaches Spark, too, which ends at once. It may even reach Spark alone, since
    spark-submit is the program that was started, and this one is its child. So the end of Spark asks to stop, too.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._signalled, self._spark = path, False, os.getppid()

    @property
    def to_stop(self) -> bool:
        """Whether the program shall end."""
        return self._signalled or not self.has_spark

    @property
    def has_spark(self) -> bool:
        """Whether spark-submit, which started this program, still runs."""
        return os.getppid() == self._spark

    @property
    def to_drain(self) -> bool:
        """Whether all output shall come out before the program ends."""
        return self._path.exists()

    def stop(self, *_: object) -> None:
        """Note that the program shall end; takes what a signal handler is given."""
        self._signalled = True


def main() -> None:
    """Run a job of the testbed: `driver.py JOB.json JOURNAL.jsonl [CALIBRATION.json]`."""
    job_path, journal_path, *calibration = map(Path, sys.argv[1:])
    job = Job.from_json(json.loads(job_path.read_text(encoding="utf-8")))
    before = {entry["event"] for entry in raw_entries(journal_path)}
    if Failed.name in before:  # the supervisor restarts the driver after any end, also after a failure of the run
        sys.exit(EnvironmentFailure.exit_code)
    journal = Journal(journal_path)
    unmeasured = [path for path in calibration if not path.exists()]
    if before and (job.store_key_file is None or unmeasured):
        why = "before it had measured how fast the job is" if unmeasured else "and the key of its checkpoints with it"
        journal.record(Failed(f"the driver died, {why}"))
        sys.exit(EnvironmentFailure.exit_code)
    journal.record(DriverStarted())
    asked = Asked(job_path.with_suffix(".drain"))
    signal.signal(signal.SIGTERM, asked.stop)
    spark = _session(job)
    try:
        job, changed = settled(job)
        if changed is not None and not before:
            journal.record(FellBack(changed, job.recovery, job.protocol))
        if not before:  # a second driver knows that the store works, and has patience with it
            job.object_store().check()
        for path in unmeasured:
            found = calibrate(job, lambda part, log: run(spark, part, log, asked), journal, path.with_suffix(".jsonl"))
            found.leave_in(path)
        if Finished.name in before:
            clear(job.object_store(), journal)
        else:
            run(spark, job, journal, asked)
        exit_code = 0
    except TakenOver as error:  # the run goes on with another driver, so it has not failed
        print(error, file=sys.stderr)
        exit_code = EnvironmentFailure.exit_code
    except AftershockError as error:
        journal.record(Failed(str(error)))
        exit_code = error.exit_code
    journal.record(DriverStopped())
    # A supervisor would start a program again that ends.
    poll_while(lambda: asked.to_drain and not asked.to_stop, interval_s=WATCH_S)
    if asked.has_spark:
        spark.stop()
    sys.exit(exit_code)


def run(spark: SparkSession, job: Job, journal: Journal, asked: Asked) -> None:
    """Run a job to its end; raises `EnvironmentFailure` when it can't go on."""
    secret = RunSecret.with_key_in(job.store_key_file)
    host = cast(str, spark.conf.get("spark.driver.host"))
    server = Server(job, secret.token, host, journal, secret.store_key)
    stage = Stage(spark, job, server.address, secret)
    watch = ExecutorWatch(spark, stage, server, journal, asked)
    stage.start()
    try:
        ended = server.serve(watch.stopping)
    finally:
        server.close()
        stage.join(ENDING_S)
    if ended:  # the stage may still wait for an executor for a slot that was to stand by
        clear(job.object_store(), journal)
    elif stage.failure is not None:
        raise EnvironmentFailure(f"the stage of slots failed: {stage.failure}", "look at the executors' logs")


def clear(store: ObjectStore, journal: Journal) -> None:
    """Delete what a run that came to its end stored. It has not failed if the store refuses: the journal tells."""
    try:
        store.clear()
    except EnvironmentFailure as refusal:
        journal.record(Undeleted(str(refusal)))


def _session(job: Job) -> SparkSession:
    """Master, memory and class paths come from spark-submit."""
    builder = SparkSession.builder.appName(f"aftershock-dataflow-{job.run_id}")
    for name, value in SETTINGS.items():
        builder = builder.config(name, str(value))
    return builder.getOrCreate()


if __name__ == "__main__":
    main()
