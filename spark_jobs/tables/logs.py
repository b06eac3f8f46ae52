"""All that tables need from the logs of a run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import cast

from pyspark.sql import DataFrame

from experiments.engines import TriggerMode
from experiments.fault_kinds import FaultKind
from experiments.recovery_modes import RecoveryMode
from experiments.spec import LoadMode
from journal.event import Event
from journal.events.injector import INJECTOR
from journal.events.query import QUERY
from journal.events.services import SUPERVISOR
from results.tables.columns import Row
from spark_jobs.streaming.progress import micro_batches
from spark_jobs.tables import rows
from spark_jobs.tables.latency import seen_at_commit, seen_in_sink
from spark_jobs.tables.ledger import LedgerSegment, UndisturbedPace, ledger, pace, steady
from spark_jobs.tables.losses import host_names
from spark_jobs.tables.outages import Outage, moments, outages, with_hosts_back
from spark_jobs.tables.recoveries import MeasuredRecovery, by_batches, lost_to
from spark_jobs.tables.run_files import RunFiles
from spark_jobs.tables.streaming.batches import Batch, Commit, batches, chains
from spark_jobs.tables.streaming.event_logs import spark_events
from spark_jobs.tables.streaming.executors import ADDED, registered
from spark_jobs.tables.streaming.query_events import STAGE_ENDED, STARTED, TASK_ENDED
from spark_jobs.tables.streaming.spark_tasks import spark_tasks

CHAINED = {STARTED, STAGE_ENDED}


@dataclass(frozen=True)
class Logs:
    """What is derived from the logs of one run."""

    files: RunFiles

    @cached_property
    def query(self) -> list[Event]:
        """The query's journal."""
        return self.files.journal("query", QUERY)

    @property
    def saturating(self) -> bool:
        """Whether the load was as high as the query could take."""
        return self.files.experiment.load.mode is LoadMode.SATURATING

    @property
    def real_time(self) -> bool:
        """Whether the query ran in Spark's real-time mode, whose batches have a set length."""
        return self.files.experiment.engine.trigger is TriggerMode.REAL_TIME

    @cached_property
    def batches(self) -> list[Batch]:
        """Every committed batch of the query, in order."""
        reported = list(micro_batches(self.query))
        found = chains(spark_events(self.files.raw, CHAINED), reported[0].id) if reported else {}
        experiment = self.files.experiment
        side_by_side = min(experiment.cores, experiment.engine.partitions)
        return batches(reported, found, side_by_side, experiment.workload.input_topics)

    @property
    def commits(self) -> list[Commit]:
        """Every moment at which results were out for good, in order."""
        return [batch.commit for batch in self.batches]

    @cached_property
    def faults(self) -> list[Row]:
        """The rows of the table `faults`, one for each planned fault."""
        executors = registered(spark_events(self.files.raw, {ADDED}), host_names(self.files.raw))
        return rows.faults(self.files.plan, self.files.journal("injector", INJECTOR), executors)

    @cached_property
    def outages(self) -> list[Outage]:
        """The outages that began before the window ended, in order."""
        found = self._outages(self.query, self.files.journal("injector", INJECTOR))
        if not any(each.went_on for each in found):
            return found
        return with_hosts_back(found, self._away)

    @property
    def _away(self) -> list[tuple[int, int]]:
        """From when until when the hosts of each fault had no executor [ns], as far as that is known.

        Hosts that have none again are away until the window ends. This is not known of hosts that were healed before,
        if the logs tell of no host that it had one again.
        """
        of_hosts = [row for row in self.faults if FaultKind(str(row["kind"])).loses_the_host]
        rows = [cast(dict[str, int | None], row) for row in of_hosts]
        until_ns, is_told = self.files.window[1], any(row["executors_ns"] for row in rows)
        known = [row for row in rows if is_told or (row["healed_ns"] or until_ns) >= until_ns]
        found = ((row["actual_ns"], row["executors_ns"] or until_ns) for row in known)
        return [(struck_ns, end_ns) for struck_ns, end_ns in found if struck_ns is not None]

    def _outages(self, query: Iterable[Event], injector: Iterable[Event]) -> list[Outage]:
        """A commit whose report died with its driver is no sign of life: it can come just after the driver's kill."""
        mode = self.files.experiment.engine.recovery_run
        supervisor = self.files.journal("supervisor", SUPERVISOR)
        found = moments(query, supervisor, injector, mode, [each.at_ns for each in self.commits if not each.made_up])
        until = self.files.window[1]
        return [outage for outage in outages(found) if outage.death_ns < until]

    @cached_property
    def undisturbed(self) -> list[Batch]:
        """The batches that lie in the window and that no outage touched.

        One that is committed after the window is left out: the ledger has only a part of its time, and an outage after
        the window can have touched it.
        """
        return [batch for batch in self._since_the_load_began if batch.started_ns >= self.files.window[0]]

    @property
    def _since_the_load_began(self) -> list[Batch]:
        """The same with those before the window."""
        return [batch for batch in steady(self.batches, self.outages) if batch.ended_ns <= self.files.window[1]]

    @cached_property
    def pace(self) -> UndisturbedPace | None:
        """How fast the undisturbed batches processed; None if there are too few of them.

        If faults are so dense that the window has too few, under a saturating load those before it count, too: without
        them the warm-up after each restart would pass for usual work, and R of eq. 10 would lack it. Before that load
        a calibration has warmed the executors up; under other loads the first batches are cold themselves.
        """
        found = pace(self.undisturbed, self.real_time)
        return pace(self._since_the_load_began, self.real_time) if found is None and self.saturating else found

    @cached_property
    def segments(self) -> list[LedgerSegment]:
        """The ledger: segments that cover the window without a gap, in order."""
        interval_ns = round(self.files.experiment.engine.checkpoint_interval_s * 1e9)
        return ledger(self.files.window, self.batches, self.outages, self.pace, interval_ns)

    def follow(self, outage: Outage) -> MeasuredRecovery:
        """How an outage went on."""
        return by_batches(outage, self.batches, self.lost_ns(outage), self.pace)

    def lost_ns(self, outage: Outage) -> int:
        """How much work an outage undid [ns]."""
        return lost_to(outage, self.outages, self.segments)

    @property
    def engine_tables(self) -> dict[str, Callable[[], list[Row]]]:
        """How the rows are made of each table that only this engine fills."""
        return {"spark_tasks": self._spark_tasks}

    @property
    def engine_measures(self) -> dict[str, float | None]:
        """Columns of the table `runs` that only this engine measures."""
        return {}

    def _spark_tasks(self) -> list[Row]:
        """One row for each task; none in other modes than `task`, where the whole batch is repeated after a loss."""
        if self.files.experiment.engine.recovery_run is not RecoveryMode.TASK:
            return []
        reported = next(micro_batches(self.query), None)
        events = spark_events(self.files.raw, {STARTED, TASK_ENDED})
        return spark_tasks(events, reported.id, host_names(self.files.raw)) if reported else []

    @property
    def watermark_ms(self) -> int | None:
        """Windows that end by then were emitted; None of a query without a watermark."""
        return rows.closed_until_ms(micro_batches(self.query))

    def seen(self) -> DataFrame:
        """When the results of each input record were seen, and when it was due."""
        if self.real_time:
            return seen_in_sink(self.files.parquet("sink"))
        return seen_at_commit(self.files.input, self.commits)

    def lag(self, at_ns: int) -> float:
        """Records due but not committed."""
        ends_ns, committed = self._committed
        return rows.due(self.files.schedule, at_ns) - committed[bisect_right(ends_ns, at_ns)]

    @cached_property
    def _committed(self) -> tuple[list[int], list[int]]:
        """When batches ended [ns], in order, and how many records were committed before the first, then by each.

        The lag is asked for at every batch of each recovery that never catches up: a sum for each would take hours.
        """
        in_order = sorted((batch.ended_ns, batch.records) for batch in self.batches)
        return [ended_ns for ended_ns, _ in in_order], [0, *accumulate(records for _, records in in_order)]
