"""The query driver: runs the query, restarts it after a failure, and journals what happens.

Run by spark-submit as `driver.py CONFIG.json JOURNAL.jsonl [CALIBRATION.json]`. With the third it first measures its
own service rate and leaves it there.

In recovery mode `query` the loss of any executor fails the whole query, which restarts from its last checkpoint once
every worker is back: the global rollback of the `utilization` paper, with slots awaited as Flink's default scheduler
does. In mode `task` Spark retries the lost tasks, and only a query that failed for another reason is restarted.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from experiments.errors import AftershockError, EnvironmentFailure
from experiments.recovery_modes import RecoveryMode
from experiments.waiting import poll_until, retry
from journal.events.common import FAILURES, DriverStarted, DriverStopped, ExecutorsLost, Failed
from journal.events.query import BatchCommitted, QueryFailed, QueryIdle, QueryReady, QueryStarted, QueryTerminated
from journal.reader import events
from journal.writer import Journal
from spark_jobs.calibration import Calibration
from spark_jobs.guard.aftershock_guard import guard_callbacks
from spark_jobs.streaming.calibration import calibrate, feed_warm_up
from spark_jobs.streaming.config import JobConfig
from spark_jobs.streaming.job import live_executors, session, start
from spark_jobs.streaming.unreported import record_unreported
from workloads.topics import INPUT, OUTPUT

POLL_S = 0.05


class ProgressJournal(StreamingQueryListener):
    """Writes the query's own events into the journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """The query was started, or started again."""
        self._journal.record(QueryStarted(str(event.runId)))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A batch was committed."""
        self._journal.record(BatchCommitted(json.loads(event.progress.json)))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """The query waits for input."""
        self._journal.record(QueryIdle(str(event.runId)))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """The query has ended, with an error or without."""
        self._journal.record(QueryTerminated(str(event.runId), event.exception))


class QueryDriver:
    """Keeps one query running until asked to stop."""

    def __init__(self, spark: SparkSession, config: JobConfig, journal: Journal, batch_records: int | None) -> None:
        self.spark, self.config, self.journal, self.batch_records = spark, config, journal, batch_records
        self.stopping = False

    def request_stop(self, *_: object) -> None:
        """Have `run` return soon; takes what a signal handler is given."""
        self.stopping = True

    def run(self) -> None:
        """Start the query when every worker is up, and again after each failure, until a stop is requested."""
        while True:
            executors = self._await_workers()
            if self.stopping:
                return
            query = self._start()
            self.journal.record(QueryReady(tuple(sorted(executors))))
            self._watch(query, executors)
            query.stop()

    def _await_workers(self) -> set[str]:
        """The executors of all workers, as one look found them: one that is lost after it is missed later."""
        found = live_executors(self.spark)
        while not self.stopping and len(found) < self.config.workers:
            time.sleep(POLL_S)
            found = live_executors(self.spark)
        return found

    def _start(self) -> StreamingQuery:
        return start(
            self.spark,
            self.config,
            input_topic=INPUT,
            output_topic=OUTPUT,
            checkpoint=self.config.checkpoint,
            interval_s=self.config.engine.checkpoint_interval_s,
            batch_records=self.batch_records,
        )

    def _watch(self, query: StreamingQuery, executors: set[str]) -> None:
        """Return when the query has failed, must be rolled back, or shall stop."""
        while not self.stopping:
            lost = executors - live_executors(self.spark)
            if lost:
                self.journal.record(ExecutorsLost(tuple(sorted(lost))))
                if self.config.engine.recovery_run is RecoveryMode.QUERY:
                    return
                executors = live_executors(self.spark)
            if not query.isActive:
                failure = query.exception()
                self.journal.record(QueryFailed(str(failure)[:2000]))
                return
            executors |= live_executors(self.spark)
            time.sleep(POLL_S)


def main() -> None:
    """Run the query of a configuration: `driver.py CONFIG.json JOURNAL.jsonl [CALIBRATION.json]`.

    What a session says of its surroundings, such as a broker that takes no input, ends it with an entry in the journal,
    and so does any error of a calibration. It then ends at once if its supervisor starts it again. After any other
    failure it begins anew.
    """
    config_path, journal_path, *calibration = map(Path, sys.argv[1:])
    config = JobConfig.read(config_path)
    if any(events(journal_path, FAILURES)):
        sys.exit(EnvironmentFailure.exit_code)
    journal = Journal(journal_path)
    journal.record(DriverStarted())
    await_master(config.master)
    try:
        spark = _session(config, to_calibrate=any(not path.exists() for path in calibration))
        batch_records = _batch_records(spark, config, journal, *calibration)
    except AftershockError as error:
        journal.record(Failed(str(error)))
        sys.exit(error.exit_code)
    guard_callbacks(spark)
    record_unreported(Path(config.checkpoint), journal_path, journal)
    spark.streams.addListener(ProgressJournal(journal))
    driver = QueryDriver(spark, config, journal, batch_records)
    signal.signal(signal.SIGTERM, driver.request_stop)
    driver.run()
    journal.record(DriverStopped())
    spark.stop()


def await_master(master: str) -> None:
    """Return once the Spark master can be connected to; Spark itself would only try every 20 s, and three times.

    What manages a cluster that is no standalone one is Spark's to find.
    """
    address = urlsplit(master)
    if address.scheme != "spark":
        return
    connect = partial(socket.create_connection, (address.hostname, address.port), timeout=1.0)
    retry(connect, OSError, interval_s=POLL_S).close()


def _session(config: JobConfig, *, to_calibrate: bool) -> SparkSession:
    """The Spark session; while it comes up, what a calibration reads first is sent to the broker."""
    with ThreadPoolExecutor(1) as beside:
        fed = beside.submit(feed_warm_up, config) if to_calibrate else None
        spark = session(config)
        if fed:
            fed.result()
    return spark


def _batch_records(spark: SparkSession, config: JobConfig, journal: Journal, path: Path | None = None) -> int | None:
    """Calibrate once per run; a driver that is restarted goes on with what the first one found.

    Raises `EnvironmentFailure` for an error of Spark: no fault is injected yet, so it would come again.
    """
    if path is None:
        return None
    if not path.exists():
        try:
            poll_until(lambda: _all_up(spark, config), interval_s=POLL_S)
            found = calibrate(spark, config, journal)
        except (Py4JError, PySparkException) as error:
            traceback.print_exc()  # the log has all of it, the run one line
            cause = f"the calibration of the query failed: {_without_traces(str(error))}"
            raise EnvironmentFailure(cause, "see query.log of the run") from None
        found.leave_in(path)
    return Calibration.read(path).batch_records


def _without_traces(error: str) -> str:
    """The first two lines of an error of Spark that say something; py4j's first line only says what was called."""
    lines = [line.strip() for line in error.splitlines()]
    return " ".join([line for line in lines if line and not line.startswith("at ")][:2])


def _all_up(spark: SparkSession, config: JobConfig) -> bool:
    return len(live_executors(spark)) >= config.workers


if __name__ == "__main__":
    main()
