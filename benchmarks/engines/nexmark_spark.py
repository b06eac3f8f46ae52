"""Throughput of NexMark's queries on Structured Streaming, through Kafka: records/s, counted at the output.

`.venv/bin/python -m benchmarks.engines.nexmark_spark [--queries q0 ...] [--events N] [--batch N] [--cores N]
[--partitions N] [--cuts read parsed forgotten whole] [--first-compiler]` sends N events to a topic once, and
has every query read all of them, as fast as it can, in one Spark session. A row has

    records/s   records of the topic (of all kinds: Spark reads them all) until all results are in the output topic
    a core      records for each second of CPU time of Spark's JVM, as nexmark-flink counts; the broker is left out
    cores       CPU time by the clock
    results     messages in the output topic, of the whole run

The window begins with the second micro-batch: the first one loads and compiles the query. `--cuts` ends the query
early, to see where the time goes: after the records are read, after they are parsed (bids), and with its results
forgotten. `--first-compiler` runs the JVM as executors of a run have it (decision 4). A query that fails, or has not
ended after `LIMIT_S`, is stopped and has a line that says why.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from benchmarks.arguments import above_zero, at_least_one
from benchmarks.engines.local_spark import HEAP, cpu_s, local_spark, versions
from benchmarks.machine_load import load_of_others
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from experiments.errors import AftershockError, BadInput, EnvironmentFailure
from experiments.waiting import Deadline
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from infra.broker import Broker
from infra.local import LocalDriver
from infra.services import kafka
from spark_jobs.streaming.job import EXECUTOR_OPTIONS, records_of, to_topic
from spark_jobs.streaming.progress import MicroBatch
from tests.integration.lone_broker import lone_broker
from workloads.inputs import records
from workloads.nexmark.feed import NexmarkEvents
from workloads.nexmark.record_queries import BID
from workloads.queries import query
from workloads.schedule import Schedule
from workloads.sending.input_sender import InputSender
from workloads.topics import INPUT

START_NS = 1_700_000_000 * 10**9  # a broker refuses records of the future
POLL_S, LIMIT_S = 0.05, 900.0
HEAD = "query until     records/s   a core  cores    records    results  batches  load"


class Cut(StrEnum):
    """How far a query goes: the records are read, parsed, made into results, or those are written."""

    READ = "read"
    PARSED = "parsed"
    FORGOTTEN = "forgotten"
    WHOLE = "whole"


@dataclass(frozen=True)
class Row:
    """What one query did in its window; `results` (of the whole run) are None where they are forgotten."""

    query: str
    until: str
    records: int
    measured_s: float
    cpu_s: float
    batches: int
    results: int | None
    load_1min: float

    def __str__(self) -> str:
        results = "-" if self.results is None else f"{self.results:,}"
        return (
            f"{self.query:5} {self.until:9} {self.records / self.measured_s:9,.0f} {self.records / self.cpu_s:8,.0f}"
            f" {self.cpu_s / self.measured_s:6.2f} {self.records:10,} {results:>10} {self.batches:8}"
            f" {self.load_1min:5.0f}"
        )


@dataclass(frozen=True)
class FailedRow:
    """A query that could not be measured, and why."""

    query: str
    until: str
    error: str

    def __str__(self) -> str:
        return f"{self.query:5} {self.until:9} {self.error}"


@dataclass(frozen=True)
class Topic:
    """The input of all queries: `events` events on `partitions` partitions, due at `rate` a second."""

    broker: Broker
    events: int
    rate: float
    partitions: int

    def fill(self) -> None:
        """Send all events; raises `EnvironmentFailure` unless the broker has taken each of them."""
        schedule = Schedule(START_NS, self.rate, self.partitions)
        kafka.create_topics(self.broker, {INPUT: self.partitions})
        sender = InputSender(self.broker, INPUT, records(NexmarkSpec(), schedule), schedule)
        sender.send_until(self.events)
        sender.require(self.events, LIMIT_S)

    def written(self, topic: str) -> int:
        """How many messages another topic with as many partitions has."""
        consumer = Consumer({**self.broker.for_librdkafka(), "group.id": "nobody"})
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, p)) for p in range(self.partitions)]
        consumer.close()
        return sum(high - low for low, high in ends)


class Session:
    """One Spark session, in which the queries run one after the other."""

    def __init__(self, spark: SparkSession, topic: Topic, batch: int, folder: Path) -> None:
        self._spark, self._topic, self._batch, self._folder = spark, topic, batch, folder
        self._runs = 0

    def attempt(self, name: NexmarkQuery, cut: Cut) -> Row | FailedRow:
        """The same as `measure`, but a failure of the query is a row: the others can still be measured."""
        try:
            return self.measure(name, cut)
        except (AftershockError, PySparkException) as error:
            return FailedRow(name.value, cut.value, next(iter(str(error).splitlines()), type(error).__name__))

    def measure(self, name: NexmarkQuery, cut: Cut) -> Row:
        """Run a query to the end of its input; it is stopped in any case."""
        load = load_of_others()
        self._runs += 1
        output = f"results-{self._runs}"
        kafka.create_topics(self._topic.broker, {output: self._topic.partitions})
        writer = self._writer(NexmarkSpec(query=name), cut, output)
        writer = writer.option("checkpointLocation", str(self._folder / output)).outputMode("append")
        running = writer.trigger(availableNow=True).start()
        try:
            batches, first, seconds, cpu = watched(running, lambda: cpu_s(self._spark))
        finally:
            running.stop()
        window = window_of(batches, first, self._topic.events)
        results = self._topic.written(output) if cut is Cut.WHOLE else None
        count = sum(each.records_read for each in window)
        return Row(name.value, cut.value, count, seconds, cpu, len(window), results, load)

    def _writer(self, spec: NexmarkSpec, cut: Cut, output: str) -> DataStreamWriter:
        read = records_of(self._spark, self._topic.broker, INPUT, self._batch)
        if cut is Cut.WHOLE:
            return to_topic(query(read, spec), self._topic.broker, output)
        return _until(cut, read, spec).writeStream.format("noop")


def _until(cut: Cut, read: DataFrame, spec: NexmarkSpec) -> DataFrame:
    if cut is Cut.READ:
        return read
    return NexmarkEvents(read, spec).bids(*BID) if cut is Cut.PARSED else query(read, spec)


def watched(running: StreamingQuery, cpu: Callable[[], float]) -> tuple[list[MicroBatch], int, float, float]:
    """Wait for the end of a query: its batches, the number of the last one before the window, and the window's length
    by the clock and by `cpu` [s].

    The window begins when the first batch is seen to be over. It is asked for only until then: each look costs the JVM.
    """
    first: int | None = None
    began_s = began_cpu_s = 0.0
    deadline = Deadline(LIMIT_S)
    while first is None and running.isActive and not deadline.passed:
        seen = running.lastProgress
        if seen is not None and (batch := MicroBatch.model_validate_json(seen.json)).has_run:
            first, began_s, began_cpu_s = batch.batch_id, time.monotonic(), cpu()
        else:
            time.sleep(POLL_S)
    if not running.awaitTermination(max(1, round(deadline.left_s))):
        raise EnvironmentFailure(f"a query has not ended after {LIMIT_S:g} s", "try fewer events")
    seconds, cpu_seconds = time.monotonic() - began_s, cpu() - began_cpu_s
    batches = [MicroBatch.model_validate_json(each.json) for each in running.recentProgress]
    if first is None:
        raise BadInput("batch", "one micro-batch in all", "so few records that there are several")
    return [each for each in batches if each.has_run], first, seconds, cpu_seconds


def window_of(batches: Sequence[MicroBatch], first: int, events: int) -> list[MicroBatch]:
    """The batches after that one; raises `EnvironmentFailure` if not all events were read in all of them."""
    found = sum(each.records_read for each in batches)
    if found != events:
        raise EnvironmentFailure(f"Spark read {found} of {events} records", "look at its log")
    after = [each for each in batches if each.batch_id > first]
    if not any(each.records_read for each in after):
        raise BadInput("batch", "one micro-batch of records", "so few records that there are several")
    return after


@one_line_errors()
def main() -> None:
    """Measure every query, and print a line for each."""
    given = _arguments()
    end_by_sigterm()
    options = EXECUTOR_OPTIONS if given.first_compiler else ""
    with ExitStack() as ending:
        root = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="aftershock-nexmark-")))
        handle = ending.enter_context(lone_broker(LocalDriver(), root / "broker"))
        topic = Topic(handle.kafka, given.events, given.rate, given.partitions)
        topic.fill()
        spark = ending.enter_context(local_spark(given.cores, given.partitions, options))
        settings = settings_of(given, versions(spark), options)
        print(*(f"{name}: {value}" for name, value in settings.items()), HEAD, sep="\n", flush=True)
        session = Session(spark, topic, given.batch, root)
        session.measure(NexmarkQuery.Q0, Cut.WHOLE)  # warm-up: the first query also loads Spark's own classes
        for name, cut in itertools.product(given.queries, given.cuts):
            print(session.attempt(NexmarkQuery(name), Cut(cut)), flush=True)


def settings_of(given: argparse.Namespace, found: dict[str, str], options: str) -> dict[str, Any]:
    """What was measured, and with what; `found` and `options` are those of the JVM."""
    spec = NexmarkSpec()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **found,
        "jvm_options": options,
        "jvm_heap": HEAP,
        "cores": given.cores,
        "machine_cores": os.cpu_count(),
        "broker": "on the same cores",
        "queries": given.queries,
        "cuts": given.cuts,
        "events": given.events,
        "events_as": "JSON, one message each",
        "event_time_records_per_second": given.rate,
        "partitions": given.partitions,
        "batch_records": given.batch,
        "checkpoints": "one for each micro-batch, on a local disk",
        "state": "RocksDB with changelog checkpoints",
        "window_s": spec.window_s,
        "slide_s": spec.slide_s,
        "limit_s": LIMIT_S,
        "delivery": "at least once: Spark's sink has no transactions",
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [each.value for each in NexmarkQuery]
    parser.add_argument("--queries", nargs="+", choices=names, default=names)
    parser.add_argument("--cuts", nargs="+", choices=[each.value for each in Cut], default=[Cut.WHOLE.value])
    parser.add_argument("--events", type=at_least_one, default=1_000_000)
    parser.add_argument("--rate", type=above_zero, default=20_000.0, help="events a second of event time: dates them")
    parser.add_argument("--batch", type=at_least_one, default=200_000, help="records of a micro-batch")
    parser.add_argument("--cores", type=at_least_one, default=os.cpu_count())
    parser.add_argument("--partitions", type=at_least_one, default=2, help="of both topics, and of state")
    parser.add_argument("--first-compiler", action="store_true", help="the JVM has only its first compiler")
    return parser.parse_args()


if __name__ == "__main__":
    main()
