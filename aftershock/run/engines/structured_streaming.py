"""Spark Structured Streaming: the query driver of `spark_jobs/streaming` runs the query in micro-batches."""

from __future__ import annotations

from pathlib import Path

from aftershock.run.engines.engine import PROGRAMS, RECOVERING, Commits, Engine, Pace, Reads
from experiments.spec import Experiment
from infra.cluster import STORE, Handle
from infra.services import spark
from journal.codec import Vocabulary
from journal.event import Event
from journal.events.common import ExecutorsLost
from journal.events.query import QUERY, BatchCommitted
from results.runs.store import Run
from spark_jobs.streaming.config import JobConfig
from spark_jobs.streaming.progress import MicroBatch


class BatchPace(Pace):
    """By its batches: Structured Streaming tells of every batch that it has committed."""

    def __init__(self, topics: tuple[str, ...]) -> None:
        super().__init__()
        self._topics = topics

    def take(self, event: Event) -> None:
        if isinstance(event, ExecutorsLost):
            self.doing, self.records_per_s = RECOVERING, None
        elif isinstance(event, BatchCommitted):
            batch = MicroBatch.of(event)
            self.committed_records = sum(end for _, end in batch.offsets_of(self._topics).values())
            if not batch.made_up:  # otherwise the query is down while its next driver tells this
                self.records_per_s = batch.processed_rows_per_second
                self.doing = f"batch {batch.batch_id} committed"


class BatchCommits(Commits):
    """Each micro-batch with input is a commit, unless its report was made up: then it was committed long before."""

    def _is_commit(self, event: Event) -> bool:
        if not isinstance(event, BatchCommitted):
            return False
        batch = MicroBatch.of(event)
        return batch.num_input_rows > 0 and not batch.made_up


class BatchReads(Reads):
    """Each micro-batch tells how many records it read; those of `topics` count."""

    def __init__(self, topics: tuple[str, ...]) -> None:
        super().__init__()
        self._topics = topics

    def take(self, event: Event) -> None:
        if isinstance(event, BatchCommitted):
            batch = MicroBatch.of(event)
            if batch.num_input_rows:
                read = sum(end - start for start, end in batch.offsets_of(self._topics).values())
                self.counts.append((event.at_ns, self.counts[-1][1] + read))


class StructuredStreaming(Engine):
    """The engine `structured-streaming` for a workload of this project."""

    @property
    def vocabulary(self) -> Vocabulary[Event]:
        return QUERY

    def check(self) -> None:
        """The workload comes with this project, so that nothing can be missing."""

    def submission(self, handle: Handle, run: Run) -> list[str]:
        event_log = run.raw / spark.EVENT_LOG
        job = job_config(self.experiment, handle, checkpoint=checkpoint_of(handle), event_log=event_log)
        return self._submit_driver(PROGRAMS / "streaming" / "driver.py", job, handle, run)

    def pace(self) -> Pace:
        return BatchPace(self.experiment.workload.input_topics)

    def commits(self) -> Commits:
        return BatchCommits()

    def reads(self) -> Reads:
        return BatchReads(self.experiment.workload.input_topics)


def job_config(experiment: Experiment, handle: Handle, *, checkpoint: Path | str, event_log: Path) -> JobConfig:
    """The query driver's configuration."""
    return JobConfig(
        broker=handle.kafka,
        master=handle.master,
        workload=experiment.workload,
        engine=experiment.engine,
        workers=experiment.cluster.workers,
        cores=experiment.cores,
        checkpoint=str(checkpoint),
        event_log=str(event_log),
    )


def checkpoint_of(handle: Handle) -> str:
    """The folder of a query's checkpoints, which every host sees: a path, or a URL on a cluster that is borrowed."""
    return handle.checkpoints or str(Path(handle.root) / STORE / "checkpoint")
