"""All that tables need from the logs of a testbed run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from journal.event import Event
from journal.events.injector import INJECTOR
from journal.events.services import SUPERVISOR
from journal.events.testbed import TESTBED
from results.tables.columns import Row
from spark_jobs.tables.dataflow import journal_tables, partial_ledger
from spark_jobs.tables.dataflow.copies import copies, cpu_shares
from spark_jobs.tables.dataflow.output_logs import output_logs
from spark_jobs.tables.dataflow.partition_rates import partition_rates, sinks_of
from spark_jobs.tables.dataflow.partition_recoveries import PartitionRecovery, partition_recoveries
from spark_jobs.tables.dataflow.query_recoveries import query_recoveries
from spark_jobs.tables.dataflow.relative_latency import query_latencies, slides, with_normal
from spark_jobs.tables.dataflow.tentative import SECOND_MS, WINDOW, tentative, totals
from spark_jobs.tables.latency import seen_at_commit, seen_in_sink
from spark_jobs.tables.ledger import LedgerSegment, UndisturbedPace
from spark_jobs.tables.logs import Logs
from spark_jobs.tables.losses import Loss, as_query_journal, host_names, losses, that_took_something
from spark_jobs.tables.outages import Outage
from spark_jobs.tables.recoveries import MeasuredRecovery
from spark_jobs.tables.streaming.batches import Batch, Commit


class TestbedLogs(Logs):
    """What `Logs` has of a run, from the journal of the testbed's driver; and its partitions and queries."""

    @property
    def ever_commits(self) -> bool:
        """Whether anything is ever committed; without checkpoints nothing is."""
        return self.files.experiment.engine.takes_checkpoints

    @cached_property
    def query(self) -> list[Event]:
        """The journal of the testbed's driver."""
        return self.files.journal("query", TESTBED)

    @cached_property
    def batches(self) -> list[Batch]:
        """One batch for what was committed at once; without checkpoints, for what was read in an interval."""
        interval_ns = round(self.files.experiment.engine.checkpoint_interval_s * 1e9)
        return journal_tables.batches(self.query, interval_ns, commits=self.ever_commits)

    @property
    def commits(self) -> list[Commit]:
        """Every commit, also of those that make one batch; without checkpoints, what was read in each interval."""
        return journal_tables.commits(self.query) if self.ever_commits else super().commits

    @cached_property
    def losses(self) -> list[Loss]:
        """The slots that were lost with their partitions, and the drivers."""
        injector, supervisor = self.files.journal("injector", INJECTOR), self.files.journal("supervisor", SUPERVISOR)
        return losses(self.query, injector, host_names(self.files.raw), supervisor)

    @cached_property
    def partition_recoveries(self) -> list[PartitionRecovery]:
        """How the partitions came back."""
        return partition_recoveries(self.query, self.losses)

    @cached_property
    def outages(self) -> list[Outage]:
        """When partitions were lost; in runs that recover in parts the others went on.

        There a host that comes back has no partition if the others had room for those that it had lost.
        """
        injector, engine = self.files.journal("injector", INJECTOR), self.files.experiment.engine
        if engine.standby_run or engine.recovers_in_parts:
            injector = that_took_something(injector, self.query, self.losses)
        return self._outages(as_query_journal(self.query), injector)

    @cached_property
    def pace(self) -> UndisturbedPace | None:
        """How fast undisturbed batches were read in useful time; None if there are too few of them."""
        return journal_tables.pace(self.undisturbed, self.segments)

    @cached_property
    def segments(self) -> list[LedgerSegment]:
        """The ledger of the window: of the dataflow as a whole, or of each partition's time if survivors went on."""
        if self.files.experiment.engine.recovers_in_parts:
            return partial_ledger.ledger(self.files.window, self.query, self.partition_recoveries)
        return journal_tables.ledger(self.files.window, self.query, self.outages)

    def follow(self, outage: Outage) -> MeasuredRecovery:
        """How an outage went on."""
        if self.files.experiment.engine.recovers_in_parts:
            return journal_tables.follow_parts(outage, self.query, self.lost_ns(outage), self.partition_recoveries)
        return journal_tables.follow(outage, self.query, self.lost_ns(outage))

    @property
    def engine_tables(self) -> dict[str, Callable[[], list[Row]]]:
        """How the rows are made of each table that only this engine fills."""
        journal, window = self.query, self.files.window
        return {
            "partition_checkpoints": lambda: journal_tables.partition_checkpoints(journal, window),
            "partition_recoveries": lambda: [each.row() for each in self.partition_recoveries],
            "query_recoveries": lambda: self._query_recoveries,
            "query_latencies": lambda: self._query_latencies,
            "partition_rates": lambda: partition_rates(journal, window, sinks_of(self.files.experiment)),
            "copies": lambda: copies(journal, window, host_names(self.files.raw)),
            "output_logs": lambda: output_logs(journal, window),
            "tentative": lambda: self.tentative,
        }

    @property
    def _query_recoveries(self) -> list[Row]:
        """One row for each query that was restored."""
        found = query_recoveries(self.files.experiment, self.query, self.losses, self.partition_recoveries)
        return with_normal(self.files.experiment, found, self._query_latencies) if self._query_latencies else found

    @cached_property
    def _query_latencies(self) -> list[Row]:
        """One row for each slide of each query, where results tell which query they are of."""
        if not self.files.experiment.names_queries:
            return []
        first_loss_ns = min((each.death_ns for each in self.losses), default=None)
        found = slides(self.files.parquet("sink"))
        return query_latencies(self.files.experiment, found, self.files.window[0], first_loss_ns)

    @property
    def engine_measures(self) -> dict[str, float | None]:
        """What only this engine measures: the overhead of its messages up to the end of the run, the shares of CPU time
        that went into copies and checkpoints in the window, and how good tentative output was."""
        overhead = {"message_overhead": journal_tables.message_overhead(self.query)}
        return overhead | vars(cpu_shares(self.query, self.files.window)) | totals(self.tentative)

    @property
    def watermark_ms(self) -> int:
        """The dataflow ran to the end of what it had read, so that all of its windows are closed."""
        return journal_tables.END_OF_TIME_MS

    @cached_property
    def tentative(self) -> list[Row]:
        """One row for each window with tentative output; none without an oracle to hold it against."""
        experiment = self.files.experiment
        if not (experiment.engine.tentative_run and experiment.workload.has_oracle):
            return []
        found, exact, sink = (self.files.parquet(name) for name in ("tentative", "oracle", "sink"))
        concerned = WINDOW
        if experiment.workload.by_record:
            concerned, second = ["second"], F.floor(F.col("start_ms") / SECOND_MS)
            found, exact, sink = (each.withColumn("second", second) for each in (found, exact, sink))
        windows = found.select(*concerned).distinct()
        exact, sink = (each.join(windows, concerned, "left_semi") for each in (exact, sink))
        return tentative(experiment, self.query, *(each.toPandas() for each in (found, exact, sink)))

    def seen(self) -> DataFrame:
        """Results are seen when they are committed; when they come to the sink if they never are, or if the protocol
        lets them out without waiting for that."""
        engine = self.files.experiment.engine
        if self.files.experiment.workload.by_record and (engine.puts_out_by_batch or not self.ever_commits):
            return seen_in_sink(self.files.parquet("sink"))
        return seen_at_commit(self.files.input, self.commits)
