"""The protocol testbed: the driver program of `spark_jobs/testbed` runs the query on slots that are Spark tasks."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any, cast

from aftershock.run.engines.engine import PROGRAMS, RECOVERING, STARTING, Commits, Engine, Pace, Reads
from aftershock.run.engines.structured_streaming import checkpoint_of
from experiments.spec import Experiment
from experiments.workloads import NexmarkSpec, ReachabilitySpec
from infra.cluster import Handle
from results.runs.store import Run
from testbed.progress import events_read

DRAIN_FILE, DRAINED = "query.drain", "finished"  # the order to the driver, and the event by which it answers
REPORTS = 11  # of the testbed, two a second: its sources read in bursts, so their rate is taken over five seconds


class DataflowPace(Pace):
    """By reports on where its sources are, and by what it tells when all output up to a line is out.

    A protocol that never commits has no other measure than what was read.
    """

    def __init__(self, *, commits: bool) -> None:
        super().__init__()
        self._told_by = ("committed", "finished") if commits else ("progress", "finished")
        self._reports: deque[tuple[int, int]] = deque(maxlen=REPORTS)  # when [ns], events read by then
        self._epoch: int | None = None

    def take(self, entry: dict[str, Any]) -> None:
        if entry["event"] in self._told_by and entry["positions"]:
            self.committed_records = events_read(entry["positions"])
        if entry["event"] == "progress" and entry["phase"] != "running":
            self._reports.clear()
            self.records_per_s, self.doing = None, STARTING if self._epoch is None else RECOVERING
        elif entry["event"] == "progress" and entry["positions"]:
            self._note(entry)

    def _note(self, entry: dict[str, Any]) -> None:
        if entry["epoch"] != self._epoch:
            self._reports.clear()
        self._epoch, self.doing = entry["epoch"], f"epoch {entry['epoch']}"
        self._reports.append((entry["at_ns"], events_read(entry["positions"])))
        (from_ns, before), (to_ns, now) = self._reports[0], self._reports[-1]
        self.records_per_s = max(0.0, (now - before) / (to_ns - from_ns) * 1e9) if to_ns > from_ns else None


class LineCommits(Commits):
    """Each line of the testbed's checkpoints is a commit.

    Without checkpoints nothing is committed: there each report counts that the sources are at work.
    """

    def __init__(self, *, commits: bool) -> None:
        super().__init__()
        self._told_by = "committed" if commits else "progress"

    def _is_commit(self, entry: dict[str, Any]) -> bool:
        return entry["event"] == self._told_by and any(entry["positions"].values())


class ReportedReads(Reads):
    """Each report of the testbed tells where its sources are."""

    def take(self, entry: dict[str, Any]) -> None:
        if entry["event"] == "progress" and entry["phase"] == "running" and entry["positions"]:
            self.counts.append((entry["at_ns"], events_read(entry["positions"])))


class Dataflow(Engine):
    """The engine `dataflow`."""

    def check(self) -> None:
        """The workload comes with this project, so that nothing can be missing."""

    def submission(self, handle: Handle, run: Run) -> list[str]:
        document = testbed_job(self.experiment, handle, checkpoint_of(handle), run.run_id)
        return self._submit_driver(PROGRAMS / "testbed" / "driver.py", document, handle, run)

    def pace(self) -> Pace:
        return DataflowPace(commits=self.experiment.engine.takes_checkpoints)

    def commits(self) -> Commits:
        return LineCommits(commits=self.experiment.engine.takes_checkpoints)

    def reads(self) -> Reads:
        return ReportedReads()

    def drain(self, handle: Handle) -> str:
        """Output that is not committed yet is part of what is judged, so the driver ends only once it is out."""
        (handle.orders / DRAIN_FILE).touch()
        return DRAINED


def testbed_job(experiment: Experiment, handle: Handle, store: Path, run_id: str) -> dict[str, Any]:
    """The testbed's job, from topic to topic; without checkpoints no output is ever safe, so it goes out at once."""
    from testbed.core.partition import PartitionLimits
    from testbed.operators import Delivery
    from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec

    engine = experiment.engine
    delivery = Delivery.EXACTLY_ONCE if engine.takes_checkpoints else Delivery.PLAIN
    return Job(
        run_id=run_id,
        workload=cast(NexmarkSpec | ReachabilitySpec, experiment.workload),  # the spec refuses others on the testbed
        protocol=engine.protocol_run.value,
        slots=experiment.cores,
        parallelism=engine.partitions,
        input=JobInput(InputKind.KAFKA, None, broker=handle.kafka),
        output=OutputSpec(OutputKind.KAFKA, delivery, broker=handle.kafka),
        store=engine.objects_of(run_id) or str(store),
        store_endpoint=engine.store_endpoint,
        chaining=engine.chaining_run,
        checkpoint_interval_s=engine.checkpoint_interval_s,
        limits=PartitionLimits(records_per_message=engine.records_per_message_run),
    ).to_json()
