"""The raw logs of a run, and what follows from them for its tables."""

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

from chaos.fault_plan import PLAN_FILE, FaultPlan
from experiments.engines import TriggerMode
from experiments.plain_files import RefusedFile, open_below
from experiments.spec import Experiment, LoadMode
from experiments.workload_base import INPUT
from journal.codec import EventT, Vocabulary
from journal.event import Event
from journal.events.injector import INJECTOR
from journal.events.query import QUERY
from journal.events.services import SCHEDULES, SUPERVISOR, LoadScheduled
from journal.reader import events
from results.runs.store import Run
from results.tables.columns import Row
from spark_jobs.streaming.progress import micro_batches
from spark_jobs.tables import rows
from spark_jobs.tables.batches import Batch, batches, chains
from spark_jobs.tables.copies import CpuShares
from spark_jobs.tables.executors import ADDED, registered
from spark_jobs.tables.latency import seen_at_commit, seen_in_sink
from spark_jobs.tables.ledger import Segment, UndisturbedPace, ledger, pace, steady
from spark_jobs.tables.losses import host_names
from spark_jobs.tables.outages import Outage, moments, outages
from spark_jobs.tables.partition_recoveries import PartitionRecovery
from spark_jobs.tables.recoveries import MeasuredRecovery, by_batches

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
        """One row for each report on an output log; none, since Spark keeps none."""
        return []

    @property
    def copies(self) -> list[Row]:
        """What active copies took; nothing, since Spark makes none."""
        return []

    @property
    def cpu_shares(self) -> CpuShares:
        """Which shares of CPU time went into copies and checkpoints; None of a query that does not report it."""
        return CpuShares()

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

    def parquet(self, name: str) -> DataFrame:
        """The rows that the run left in `NAME.parquet`; raises as Spark does if there is no such file."""
        return self.spark.read.parquet(str(self.raw / f"{name}.parquet"))

    @property
    def input(self) -> DataFrame:
        """The committed input; logs of the first versions do not name its one topic."""
        found = self.parquet("input")
        return found if "topic" in found.columns else found.withColumn("topic", F.lit(INPUT))

    def seen(self) -> DataFrame:
        """When the results of each input record were seen, and when it was due."""
        return seen_in_sink(self.parquet("sink")) if self.real_time else seen_at_commit(self.input, self.batches)

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
