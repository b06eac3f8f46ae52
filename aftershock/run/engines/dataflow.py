"""The protocol testbed: the driver program of `spark_jobs/testbed` runs the query on slots that are Spark tasks."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from aftershock.run.engines.engine import PROGRAMS, RECOVERING, STARTING, Commits, Engine, Pace, Reads
from aftershock.run.engines.structured_streaming import checkpoint_of
from experiments.errors import BadInput
from experiments.recovery_modes import RecoveryPlanner
from experiments.spec import Experiment
from experiments.workloads.catalogue import NexmarkSpec, ReachabilitySpec
from infra.broker import Broker
from infra.cluster import Handle
from journal.codec import Vocabulary
from journal.event import Event
from journal.events.testbed import TESTBED, Committed, Finished, Report
from results.runs.store import Run
from testbed.source_positions import events_read

if TYPE_CHECKING:
    from testbed.runtime.job import Job

DRAIN_FILE = "query.drain"  # the order to the driver, which answers by `Finished` in its journal
REPORTS = 11  # of the testbed, two a second: its sources read in bursts, so their rate is taken over five seconds


class DataflowPace(Pace):
    """Takes progress from the reports on source positions and from the entries that say which output is committed.

    A protocol that never commits has no other measure than what was read.
    """

    def __init__(self, *, commits: bool) -> None:
        super().__init__()
        self._told_by = (Committed if commits else Report, Finished)
        self._reports: deque[tuple[int, int]] = deque(maxlen=REPORTS)  # when [ns], events read by then
        self._epoch: int | None = None

    def take(self, event: Event) -> None:
        if isinstance(event, self._told_by) and event.positions:
            self.committed_records = events_read(event.positions)
        if isinstance(event, Report):
            self._note(event)

    def _note(self, report: Report) -> None:
        if not report.is_running:
            self._reports.clear()
            self.records_per_s, self.doing = None, STARTING if self._epoch is None else RECOVERING
        elif report.positions:
            self._measure(report)

    def _measure(self, report: Report) -> None:
        if report.epoch != self._epoch:
            self._reports.clear()
        self._epoch, self.doing = report.epoch, f"epoch {report.epoch}"
        self._reports.append((report.at_ns, events_read(report.positions)))
        (from_ns, before), (to_ns, now) = self._reports[0], self._reports[-1]
        self.records_per_s = max(0.0, (now - before) / (to_ns - from_ns) * 1e9) if to_ns > from_ns else None


class LineCommits(Commits):
    """Each line of the testbed's checkpoints is a commit.

    Without checkpoints nothing is committed: there each report counts that the sources are at work.
    """

    def __init__(self, *, commits: bool) -> None:
        super().__init__()
        self._told_by = Committed if commits else Report

    def _is_commit(self, event: Event) -> bool:
        return isinstance(event, self._told_by) and any(event.positions.values())


class ReportedReads(Reads):
    """Each report of the testbed tells where its sources are."""

    def take(self, event: Event) -> None:
        if isinstance(event, Report) and event.is_running and event.positions:
            self.counts.append((event.at_ns, events_read(event.positions)))


class DataflowEngine(Engine):
    """The engine `dataflow`."""

    @property
    def vocabulary(self) -> Vocabulary[Event]:
        return TESTBED

    def check(self) -> None:
        """Raises `BadInput` if slots hold fewer partitions than there are, and if copies have no place.

        That is so if too few slots stand by, or those that do share hosts or failure domains with the primaries.
        """
        try:
            _require_places(self.experiment, _job(self.experiment, "unnamed", "nowhere", None))
        except BadInput as problem:
            raise BadInput(f"engine.{problem.field}", problem.value, problem.allowed) from None

    def submission(self, handle: Handle, run: Run) -> list[str]:
        job = testbed_job(self.experiment, handle, Path(checkpoint_of(handle)), run.run_id)
        return self._submit_driver(PROGRAMS / "testbed" / "driver.py", job, handle, run)

    def pace(self) -> Pace:
        return DataflowPace(commits=self.experiment.engine.takes_checkpoints)

    def commits(self) -> Commits:
        return LineCommits(commits=self.experiment.engine.takes_checkpoints)

    def reads(self) -> Reads:
        return ReportedReads()

    def drain(self, handle: Handle) -> type[Event]:
        """Output that is not committed yet is part of what is judged, so the driver ends only once it is published."""
        (handle.orders / DRAIN_FILE).touch()
        return Finished


def testbed_job(experiment: Experiment, handle: Handle, store: Path, run_id: str) -> Job:
    """The testbed's job, from topic to topic."""
    from testbed.experiment_layout import domains_of

    job = _job(experiment, run_id, experiment.engine.objects_of(run_id) or str(store), handle.kafka)
    domains = {handle.hosts[name].address: of for name, of in domains_of(experiment).items()}
    standby = tuple(handle.hosts[name].address for name in standby_hosts(experiment))
    return replace(job, domains=domains, standby_hosts=standby, store_key_file=str(handle.store_key))


def standby_hosts(experiment: Experiment) -> tuple[str, ...]:
    """The last workers, as many as have nothing but slots that stand by."""
    count = experiment.engine.standby_run // experiment.cluster.worker_cores
    return tuple(experiment.worker_names)[len(experiment.worker_names) - count :]


def _require_places(experiment: Experiment, job: Job) -> None:
    """Raises `BadInput` if a copy has no place at the start. The last slots by host stand by."""
    from testbed.experiment_layout import slots_of
    from testbed.recovery import PartiallyActive
    from testbed.recovery.partially_active import without_a_place

    strategy = job.brought_back_by()
    if not isinstance(strategy, PartiallyActive):
        return
    layout, workers = job.layout(), slots_of(experiment)
    copied = strategy.copied(layout)
    if lacking := without_a_place(layout, job.slots, copied, workers):
        first = layout.partitions[min(lacking)]
        where = f"{first.name} on {workers[first.slot(job.slots)].host}"
        allowed = (
            "slots with room on other hosts and in other failure domains than the primaries:"
            f" {len(lacking)} of {len(copied)} copies have none, as that of {where}"
        )
        raise BadInput("standby", job.standby, allowed)


def _job(experiment: Experiment, run_id: str, store: str, broker: Broker | None) -> Job:
    """With protocol `none` no output is ever safe, so it goes out at once."""
    from testbed.core.partition.partition import PartitionLimits
    from testbed.operators import Delivery
    from testbed.output_log.policies import CheckPacing, Saving
    from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec

    engine, batched = experiment.engine, experiment.load.batch_records
    delivery = Delivery.EXACTLY_ONCE if engine.puts_out_once else Delivery.PLAIN
    return Job(
        run_id=run_id,
        workload=cast(NexmarkSpec | ReachabilitySpec, experiment.workload),  # the spec refuses others on the testbed
        protocol=engine.protocol_run.value,
        slots=experiment.cores - engine.standby_run,
        standby=engine.standby_run,
        recovery=engine.recovery_run.value,
        tentative=engine.tentative_run,
        spare_lines=engine.spare_lines_run,
        staggered=engine.staggered_run,
        planner=(engine.planner or RecoveryPlanner.BEST_DENSITY).value,
        planner_limit_s=engine.planner_limit_run_s,
        capacity=engine.capacity,
        replication_ratio=engine.replication_ratio_run,
        replication_planner=engine.replication_planner_run.value,
        copied=engine.copied,
        standby_room=engine.standby_room,
        trim_every_s=engine.trim_every_run_s,
        adapt_every_s=engine.adapt_every_s,
        cpu_limit=engine.cpu_limit,
        parallelism=engine.partitions,
        input=JobInput(InputKind.KAFKA, None, broker=broker, batch_records=batched),
        output=OutputSpec(OutputKind.KAFKA, delivery, broker=broker, batch_records=batched),
        store=store,
        store_endpoint=engine.store_endpoint,
        chaining=engine.chaining_run,
        checkpoint_interval_s=engine.checkpoint_interval_s,
        batch_length_s=engine.batch_length_run_s,
        limits=PartitionLimits(records_per_message=engine.records_per_message_run),
        saving=Saving(
            engine.log_extent, engine.log_replay, CheckPacing(*engine.check_pace_run_s), engine.log_failure_rate
        ),
    )
