"""Runs a user's streaming program unchanged, and journals the progress of its query.

Run by spark-submit as `own_job.py CONFIG.json JOURNAL.jsonl`. The program runs as `__main__` with its own arguments,
from its own folder, and none of our modules hides one of its modules. Each session that it gets from
`SparkSession.builder` has a listener, and its executors are watched. If the program starts several queries, the first
one is followed. How the program recovers from a failure is up to the program: whenever it ends, its supervisor restarts
it.
"""

from __future__ import annotations

import functools
import os
import runpy
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from experiments.errors import BadInput
from infra.broker import Broker
from infra.launch import NEVER_WORKS, REPOSITORY
from journal.events.common import DriverStarted, DriverStopped, ExecutorsLost
from journal.events.query import QueryFailed, QueryReady
from journal.writer import Journal
from spark_jobs.guard.aftershock_guard import guard_callbacks
from spark_jobs.streaming.config import OwnJobConfig
from spark_jobs.streaming.driver import POLL_S, ProgressJournal, await_master
from spark_jobs.streaming.job import live_executors
from spark_jobs.streaming.unreported import record_unreported


class FirstQuery(ProgressJournal):
    """Journals the first query that the program starts, and its start and failure in the words of the query driver.

    Before the first start, `make_up` is called with the id of the query: it journals what the driver before did not.
    """

    def __init__(self, journal: Journal, executors: Callable[[], set[str]], make_up: Callable[[str], None]) -> None:
        super().__init__(journal)
        self._executors, self._make_up, self._followed = executors, make_up, ""
        self._again: QueryStartedEvent | None = None
        self._lock = threading.Lock()  # starts and ends come in different threads of Spark

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """The first query to start is the one that is followed.

        Spark tells of a start at once, of an end some time later. So a program that starts the query again may have
        done so before its end is told; then the start counts from that moment on.
        """
        with self._lock:
            if not self._followed:
                self._follow(event)
            elif str(event.id) == self._followed:
                self._again = event

    def _follow(self, event: QueryStartedEvent) -> None:
        self._followed = str(event.id)
        self._make_up(self._followed)
        super().onQueryStarted(event)
        self._journal.record(QueryReady(tuple(sorted(self._executors()))))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A batch was committed; those of other queries do not count."""
        if str(event.progress.id) == self._followed:
            super().onQueryProgress(event)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """A query has ended; after the one that is followed, the next to start is."""
        with self._lock:
            if str(event.id) != self._followed:
                return
            super().onQueryTerminated(event)
            again, self._again, self._followed = self._again, None, ""
            if event.exception is not None:
                self._journal.record(QueryFailed(event.exception[:2000]))
            if again is not None:  # a program that starts it again goes on with it
                self._follow(again)


class Sessions:
    """Follows every Spark context that the program makes; raises `BadInput` for one that is not on the cluster."""

    def __init__(self, master: str, journal: Journal) -> None:
        self._master, self._journal, self._application = master, journal, ""
        self._has_made_up = False

    def notice(self, spark: SparkSession) -> None:
        """Follow the queries and executors of a session, unless its context is followed already."""
        context = spark.sparkContext
        if context.master != self._master:
            allowed = f"none, since the run has a cluster of its own ({self._master})"
            raise BadInput("the program's Spark master", context.master, allowed)
        if context.applicationId != self._application:
            self._application = context.applicationId
            guard_callbacks(spark)
            executors = functools.partial(live_executors, spark)
            make_up = functools.partial(self._make_up, spark)
            spark.streams.addListener(FirstQuery(self._journal, executors, make_up))
            threading.Thread(target=self._watch, args=(spark, self._application), daemon=True).start()

    def _make_up(self, spark: SparkSession, query: str) -> None:
        """Journal the batches of a query whose reports died with the driver before; later, none has died."""
        if self._has_made_up:
            return
        self._has_made_up = True
        if checkpoint := _checkpoint_of(spark, query):
            record_unreported(checkpoint, self._journal.path, self._journal)

    def _watch(self, spark: SparkSession, application: str) -> None:
        """Journal executors that are lost, for as long as the context lives."""
        known: set[str] = set()
        while self._application == application:
            try:
                alive = live_executors(spark)
            except (Py4JError, AttributeError, OSError):  # the context was stopped, or the JVM is gone
                return
            if lost := known - alive:
                self._journal.record(ExecutorsLost(tuple(sorted(lost))))
            known = alive
            time.sleep(POLL_S)


def _checkpoint_of(spark: SparkSession, query: str) -> Path | None:
    """The folder of a query's checkpoint; None if it is at a URL, or if this version of Spark does not tell where."""
    try:
        place = str(spark._jsparkSession.streams().get(query).streamingQuery().resolvedCheckpointRoot())
    except (Py4JError, AttributeError) as error:
        print(f"no report of a batch that was committed: where is the checkpoint? {error}", file=sys.stderr)
        return None
    path = place.removeprefix("file:")
    return Path(path) if path.startswith("/") else None


def notice_sessions(notice: Callable[[SparkSession], None]) -> None:
    """Have `notice` called with every session that a builder returns, before the program gets it."""
    create = SparkSession.Builder.getOrCreate

    @functools.wraps(create)
    def create_and_notice(builder: SparkSession.Builder) -> SparkSession:
        session = create(builder)
        notice(session)
        return session

    SparkSession.Builder.getOrCreate = create_and_notice  # type: ignore[assignment, method-assign]  # replaced on purpose


def log_in(broker: Broker) -> None:
    """Have every reader and writer of Spark that names the run's broker show it the run's credentials, too."""
    for kind in (DataFrameReader, DataFrameWriter, DataStreamReader, DataStreamWriter):
        _log_in(kind, broker)


def _log_in(kind: Any, broker: Broker) -> None:
    """As options are set, since a program may set them one by one or all at once."""
    set_option, set_options = kind.option, kind.options

    @functools.wraps(set_option)
    def option(self: Any, key: str, value: Any) -> Any:
        found = set_option(self, key, value)
        return set_options(found, **broker.spark_credentials()) if _is_of(broker, key, value) else found

    @functools.wraps(set_options)
    def options(self: Any, **given: Any) -> Any:
        found = set_options(self, **given)
        named = any(_is_of(broker, key, value) for key, value in given.items())
        return set_options(found, **broker.spark_credentials()) if named else found

    kind.option, kind.options = option, options


def _is_of(broker: Broker, key: str, value: Any) -> bool:
    """Whether an option names that broker, or one of those that it is made of."""
    own = set(broker.address.split(","))
    return key.lower() == "kafka.bootstrap.servers" and not own.isdisjoint(str(value).split(","))


def run(job: OwnJobConfig) -> None:
    """Run the program as Python itself would in its folder; what it imports by a name that we have, too, is its own."""
    ours = {path.name for path in REPOSITORY.iterdir() if (path / "__init__.py").exists()}
    for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
        del sys.modules[name]
    sys.path[:] = [str(Path(job.program).parent), *(path for path in sys.path[1:] if path != str(REPOSITORY))]
    os.chdir(Path(job.program).parent)
    sys.argv[:] = [job.program, *job.arguments]
    runpy.run_path(job.program, run_name="__main__")


def main() -> None:
    """Run the program of a configuration: `own_job.py CONFIG.json JOURNAL.jsonl`."""
    config_path, journal_path = map(Path, sys.argv[1:])
    job, journal = OwnJobConfig.read(config_path), Journal(journal_path)
    journal.record(DriverStarted())
    await_master(job.master)
    log_in(job.broker)
    notice_sessions(Sessions(job.master, journal).notice)
    try:
        run(job)
    except BadInput as error:
        print(f"Error: {error}", file=sys.stderr)  # the code that reads this log looks for a line that names an error
        sys.exit(NEVER_WORKS)
    journal.record(DriverStopped())


if __name__ == "__main__":
    main()
