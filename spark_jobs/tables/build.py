"""Builds the result tables of a run from its raw logs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from chaos.fault_plan import PLAN_FILE, FaultPlan
from experiments.engines import EngineName, TriggerMode
from experiments.plain_files import RefusedFile, open_below
from experiments.recovery_modes import RecoveryMode
from experiments.spec import Experiment, LoadMode
from experiments.workload_base import INPUT
from journal.codec import EventT, Vocabulary
from journal.event import Event
from journal.events.injector import INJECTOR
from journal.events.query import QUERY
from journal.events.search import SEARCH
from journal.events.services import HOSTS, MACHINE, SCHEDULES, SUPERVISOR, LoadScheduled
from journal.events.testbed import TESTBED
from journal.reader import events
from results.runs.store import Run
from results.tables.columns import Row
from results.tables.schema import RUN_TABLES, TABLES
from spark_jobs.streaming.progress import micro_batches
from spark_jobs.tables import partial_ledger, rows, testbed_tables
from spark_jobs.tables.archive import committed_offsets
from spark_jobs.tables.batches import Batch, batches, chains
from spark_jobs.tables.executors import ADDED, registered
from spark_jobs.tables.latency import latency, seen_at_commit, seen_in_sink
from spark_jobs.tables.ledger import Segment, UndisturbedPace, ledger, pace, steady
from spark_jobs.tables.losses import Loss, as_query_journal, host_names, losses, that_took_something
from spark_jobs.tables.outages import Outage, moments, outages
from spark_jobs.tables.output_logs import output_logs
from spark_jobs.tables.partition_recoveries import PartitionRecovery, partition_recoveries
from spark_jobs.tables.quality import closed, committed_until_ms, quality
from spark_jobs.tables.query_recoveries import query_recoveries
from spark_jobs.tables.recoveries import MeasuredRecovery, by_batches, recoveries
from spark_jobs.tables.spark_tasks import ENDED, STARTED, spark_tasks
from spark_jobs.tables.tentative import WINDOW, tentative, totals

EVENTS = "spark-events"  # of raw
LONGEST_LINE = 2**26  # characters of one event; those of a large query have some millions
CHAINED = {"SparkListenerJobStart", "SparkListenerStageCompleted"}


@dataclass(frozen=True)
class Logs:
    """The raw logs of one run, and what is derived from them."""

    spark: SparkSession
    result: Path

    @property
    def raw(self) -> Path:
        """The folder of raw logs."""
        return self.result / "raw"

    @property
    def run(self) -> Run:
        """The run that the logs are of, with its tables as far as they are written."""
        return Run(self.result.parent.name, self.result)

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment as it ran. Raises pydantic's `ValidationError` if its file is damaged."""
        return Experiment.model_validate_json(self.run.experiment_path.read_text(encoding="utf-8"))

    @cached_property
    def plan(self) -> FaultPlan:
        """The fault plan that the injector was given; raises as `FaultPlan.read` does."""
        return FaultPlan.read(self.raw / PLAN_FILE)

    @property
    def window(self) -> tuple[int, int]:
        """Start and end of the measurement window [UTC ns]."""
        return self.plan.window_start_ns, self.plan.window_end_ns

    def journal(self, name: str, vocabulary: Vocabulary[EventT]) -> list[EventT]:
        """The events of `NAME.jsonl` that the vocabulary has, in order; none if there is no such journal."""
        return list(events(self.raw / f"{name}.jsonl", vocabulary))

    @cached_property
    def schedule(self) -> LoadScheduled | None:
        """When input was due in the window: the last schedule of the generator; None if it never started."""
        return next(reversed(self.journal("generator", SCHEDULES)), None)

    @cached_property
    def query(self) -> list[Event]:
        """The query's journal."""
        return self.journal("query", QUERY)

    @property
    def saturating(self) -> bool:
        """Whether the load was as high as the query could take."""
        return self.experiment.load.mode is LoadMode.SATURATING

    @property
    def real_time(self) -> bool:
        """Whether the query ran in Spark's real-time mode, whose batches have a set length."""
        return self.experiment.engine.trigger is TriggerMode.REAL_TIME

    @cached_property
    def batches(self) -> list[Batch]:
        """Every committed batch of the query, in order."""
        reported = list(micro_batches(self.query))
        found = chains(self._spark_events(CHAINED), reported[0].id) if reported else {}
        return batches(reported, found, min(self.experiment.cores, self.experiment.engine.partitions))

    @cached_property
    def faults(self) -> list[Row]:
        """The rows of the table `faults`, one for each planned fault."""
        executors = registered(self._spark_events({ADDED}), host_names(self.raw))
        return rows.faults(self.plan, self.journal("injector", INJECTOR), executors)

    def _spark_events(self, kinds: Container[str]) -> Iterable[dict[str, Any]]:
        """Of every driver in turn: each life of it numbers its stages from 0, and has a log named by its start.

        A driver's host may have put anything there: only regular files of the run's user are read. Files may have a
        second name, as they have while results are computed again; a host can make none that leads out of the folder
        it sees.
        """
        uid = self.raw.stat().st_uid
        for name in sorted(os.listdir(self.raw / EVENTS)):
            try:
                log = open_below(self.raw, f"{EVENTS}/{name}", uid, more_names=True)
            except RefusedFile as refusal:
                print(refusal, file=sys.stderr)
                continue
            with open(log, encoding="utf-8") as file:
                yield from (json.loads(line) for line in _lines(file, f"{EVENTS}/{name}") if _event(line) in kinds)

    @cached_property
    def outages(self) -> list[Outage]:
        """The outages that began before the window ended, in order."""
        return self._outages(self.query, self.journal("injector", INJECTOR))

    def _outages(self, query: Iterable[Event], injector: Iterable[Event]) -> list[Outage]:
        mode = self.experiment.engine.recovery_run
        found = moments(
            query, self.journal("supervisor", SUPERVISOR), injector, mode, [batch.ended_ns for batch in self.batches]
        )
        until = self.window[1]
        return [outage for outage in outages(found) if outage.death_ns < until]

    @cached_property
    def undisturbed(self) -> list[Batch]:
        """The batches of the window that no outage touched."""
        return [b for b in steady(self.batches, self.outages) if b.started_ns >= self.window[0]]

    @cached_property
    def pace(self) -> UndisturbedPace | None:
        """How fast the undisturbed batches processed; None if there are too few of them."""
        return pace(self.undisturbed, self.real_time)

    @cached_property
    def segments(self) -> list[Segment]:
        """The ledger: segments that cover the window without a gap, in order."""
        interval_ns = round(self.experiment.engine.checkpoint_interval_s * 1e9)
        return ledger(self.window, self.batches, self.outages, self.pace, interval_ns)

    def follow(self, outage: Outage) -> MeasuredRecovery:
        """How an outage went on."""
        return by_batches(outage, self.batches, self.segments, self.pace)

    @property
    def spark_tasks(self) -> list[Row]:
        """One row for each task; in other modes than `task` the whole batch is done again, whoever did its tasks."""
        if self.experiment.engine.recovery_run is not RecoveryMode.TASK:
            return []
        reported = next(micro_batches(self.query), None)
        events = self._spark_events({STARTED, ENDED})
        return spark_tasks(events, reported.id, host_names(self.raw)) if reported else []

    @property
    def partition_checkpoints(self) -> list[Row]:
        """One row for each checkpoint of a partition; none, since the query has no partitions of the testbed."""
        return []

    @property
    def partition_recoveries(self) -> list[PartitionRecovery]:
        """How single partitions were restored; nothing, since Spark restores the query as a whole."""
        return []

    @property
    def query_recoveries(self) -> list[Row]:
        """One row for each query that was restored by itself; none, since Spark runs one query."""
        return []

    @property
    def output_logs(self) -> list[Row]:
        return []

    @property
    def message_overhead(self) -> float | None:
        """Bytes of the protocol relative to those of data; None of a query without messages of a protocol."""
        return None

    @property
    def watermark_ms(self) -> int | None:
        """Windows that end by then were emitted; None of a query without a watermark."""
        return rows.closed_until_ms(micro_batches(self.query))

    @cached_property
    def tentative(self) -> list[Row]:
        """What tentative output was worth; nothing where none is ever put out."""
        return []

    def seen(self) -> DataFrame:
        """When the results of each input record were seen, and when it was due."""
        return seen_in_sink(_raw(self, "sink")) if self.real_time else seen_at_commit(_input(self), self.batches)

    def lag(self, at_ns: int) -> float:
        """Records due but not committed."""
        return rows.due(self.schedule, at_ns) - sum(batch.records for batch in self.batches if batch.ended_ns <= at_ns)


def _lines(file: TextIO, name: str) -> Iterator[str]:
    """The lines of a log up to the first that is longer than any of Spark's, which would fill the memory."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            told = f"{name} has a line of more than {LONGEST_LINE:,} characters: it is not read, nor what follows"
            print(told, file=sys.stderr)
            return
        yield line


def _event(line: str) -> str | None:
    """What a line of an event log tells of, which stands first in it: most lines are long, and not wanted."""
    return next(iter(line.split('"', 4)[3:4]), None)


class TestbedLogs(Logs):
    """Of a run of the protocol testbed: the same, from the journal of its driver."""

    @property
    def commits(self) -> bool:
        """Whether anything is ever committed; without checkpoints nothing is."""
        return self.experiment.engine.takes_checkpoints

    @cached_property
    def query(self) -> list[Event]:
        """The journal of the testbed's driver."""
        return self.journal("query", TESTBED)

    @cached_property
    def batches(self) -> list[Batch]:
        """One batch for what was committed at once; without checkpoints, for what was read in an interval."""
        interval_ns = round(self.experiment.engine.checkpoint_interval_s * 1e9)
        return testbed_tables.batches(self.query, interval_ns, commits=self.commits)

    @cached_property
    def losses(self) -> list[Loss]:
        """The slots that were lost with their partitions."""
        return losses(self.query, self.journal("injector", INJECTOR), host_names(self.raw))

    @cached_property
    def partition_recoveries(self) -> list[PartitionRecovery]:
        """How the partitions came back."""
        return partition_recoveries(self.query, self.losses)

    @property
    def query_recoveries(self) -> list[Row]:
        """One row for each query that was restored."""
        return query_recoveries(self.experiment, self.query, self.losses, self.partition_recoveries)

    @property
    def output_logs(self) -> list[Row]:
        return output_logs(self.query, self.window)

    @cached_property
    def outages(self) -> list[Outage]:
        """When partitions were lost; in runs that recover in parts the others went on."""
        injector = self.journal("injector", INJECTOR)
        if self.experiment.engine.standby_run:
            injector = that_took_something(injector, self.query, self.losses)
        return self._outages(as_query_journal(self.query), injector)

    @cached_property
    def pace(self) -> UndisturbedPace | None:
        """How fast undisturbed batches were read in useful time; None if there are too few of them."""
        return testbed_tables.pace(self.undisturbed, self.segments)

    @cached_property
    def segments(self) -> list[Segment]:
        """The ledger of the window: of the dataflow as a whole, or of each partition's time if survivors went on."""
        if self.experiment.engine.recovers_in_parts:
            return partial_ledger.ledger(self.window, self.query, self.partition_recoveries)
        return testbed_tables.ledger(self.window, self.query, self.outages)

    def follow(self, outage: Outage) -> MeasuredRecovery:
        if self.experiment.engine.recovers_in_parts:
            return testbed_tables.follow_parts(outage, self.query, self.segments, self.partition_recoveries)
        return testbed_tables.follow(outage, self.query, self.segments)

    @property
    def partition_checkpoints(self) -> list[Row]:
        """One row for each checkpoint of a partition that was stored in the window."""
        return testbed_tables.partition_checkpoints(self.query, self.window)

    @property
    def message_overhead(self) -> float | None:
        """Bytes of the protocol relative to those of data, up to the end of the run; None without data."""
        return testbed_tables.message_overhead(self.query)

    @property
    def watermark_ms(self) -> int:
        """The dataflow ran to the end of what it had read, so that all of its windows are closed."""
        return testbed_tables.END_OF_TIME_MS

    @cached_property
    def tentative(self) -> list[Row]:
        experiment = self.experiment
        if not (experiment.engine.tentative_run and experiment.workload.has_oracle):
            return []
        found, exact, sink = (_raw(self, name) for name in ("tentative", "oracle", "sink"))
        if not experiment.workload.by_record:
            concerned = found.select(*WINDOW).distinct()
            exact, sink = (each.join(concerned, WINDOW, "left_semi") for each in (exact, sink))
        return tentative(experiment, self.query, *(each.toPandas() for each in (found, exact, sink)))

    def seen(self) -> DataFrame:
        """Results are seen when they are committed, or when they come to the sink if they never are."""
        if not self.commits and self.experiment.workload.by_record:
            return seen_in_sink(_raw(self, "sink"))
        return seen_at_commit(_input(self), self.batches)


LOGS = {EngineName.STRUCTURED_STREAMING: Logs, EngineName.DATAFLOW: TestbedLogs}


def logs_of(spark: SparkSession, result: Path) -> Logs:
    """The raw logs of a run, as its engine left them."""
    return LOGS[Logs(spark, result).experiment.engine.name](spark, result)


def build(logs: Logs) -> None:
    """Write every table that the raw logs allow."""
    lag = logs.lag if logs.schedule and not logs.saturating else None
    followed = recoveries(logs.outages, logs.follow, logs.batches, logs.undisturbed, lag)
    _write(logs, "faults", logs.faults)
    _write(logs, "fault_fit", rows.fault_fit(logs.experiment, logs.plan, logs.journal("injector", INJECTOR)))
    _write(logs, "recoveries", [recovery.row(number) for number, recovery in enumerate(followed)])
    _write(logs, "partition_recoveries", [each.row() for each in logs.partition_recoveries])
    _write(logs, "query_recoveries", logs.query_recoveries)
    _write(logs, "output_logs", logs.output_logs)
    _write(logs, "checkpoints", rows.checkpoints(logs.batches, logs.window, steady(logs.batches, logs.outages)))
    _write(logs, "spark_tasks", logs.spark_tasks)
    _write(logs, "partition_checkpoints", logs.partition_checkpoints)
    _write(logs, "ledger", rows.ledger(logs.segments))
    _write(logs, "throughput", rows.throughput(logs.batches, logs.schedule, logs.window))
    _write(logs, "hosts", rows.hosts(logs.journal("hosts", HOSTS), logs.window))
    _write(logs, "probes", rows.probes(logs.journal("search", SEARCH)))
    _write(logs, "tentative", logs.tentative)
    _write(logs, "runs", [_run_row(logs)])
    _save(latency(logs.seen(), logs.window), logs, "latency")
    if logs.experiment.workload.has_oracle:
        _judge(logs)


def _run_row(logs: Logs) -> Row:
    return rows.run(
        logs.run.run_id,
        logs.experiment,
        logs.plan,
        logs.segments,
        logs.batches,
        service_rate=logs.pace.rate * 1e9 if logs.pace and logs.pace.rate else None,
        load_rate=logs.schedule.rate if logs.schedule else None,
        message_overhead=logs.message_overhead,
        bracket=rows.bracket(logs.journal("search", SEARCH)),
        moved_s=rows.clock_step_s(logs.journal("machine", MACHINE), logs.window),
        **totals(logs.tentative),
    )


def _judge(logs: Logs) -> None:
    """Compare the output with what it should be, as far as it is final."""
    workload, watermark_ms = logs.experiment.workload, logs.watermark_ms
    if watermark_ms is None:
        watermark_ms = committed_until_ms(_input(logs))
    final = closed(workload, watermark_ms, committed_offsets(logs.raw, logs.experiment.engine.name))
    judged = quality(_raw(logs, "sink"), _raw(logs, "oracle"), final, by_second=workload.by_record)
    _save(judged, logs, "quality")


def _input(logs: Logs) -> DataFrame:
    """The committed input; logs of the first versions do not name its one topic."""
    found = _raw(logs, "input")
    return found if "topic" in found.columns else found.withColumn("topic", F.lit(INPUT))


def _raw(logs: Logs, name: str) -> DataFrame:
    return logs.spark.read.parquet(str(logs.raw / f"{name}.parquet"))


def _write(logs: Logs, table: str, found: list[Row]) -> None:
    """Of rows that are here anyway: a Spark job for each such table would take longer than all the rest."""
    logs.run.write_table(table, RUN_TABLES[table].of(found))


def _save(frame: DataFrame, logs: Logs, table: str) -> None:
    schema = from_arrow_schema(TABLES[table])
    typed = frame.select(*(F.col(field.name).cast(field.dataType) for field in schema))
    logs.run.write_table(table, typed.toArrow())
