"""Spark Structured Streaming: the query driver of `spark_jobs/streaming` runs the query in micro-batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aftershock.run.engines.engine import PROGRAMS, RECOVERING, Commits, Engine, Pace, Reads
from experiments.engines import OF_THE_TESTBED
from experiments.spec import Experiment
from infra.cluster import STORE, Handle
from results.runs.store import Run
from spark_jobs.streaming.progress import offsets, records_read

EVENT_LOG = "spark-events"  # of the raw logs


class BatchPace(Pace):
    """By its batches: Structured Streaming tells of every batch that it has committed."""

    def __init__(self, topics: tuple[str, ...]) -> None:
        super().__init__()
        self._topics = topics

    def take(self, entry: dict[str, Any]) -> None:
        if entry["event"] == "executors-lost":
            self.doing, self.records_per_s = RECOVERING, None
        elif entry["event"] == "progress":
            batch = entry["progress"]
            ends = {place: end for place, (_, end) in offsets(batch).items()}
            self.committed_records = sum(end for (topic, _), end in ends.items() if topic in self._topics)
            self.records_per_s = batch.get("processedRowsPerSecond")
            self.doing = f"batch {batch['batchId']} committed"


class BatchCommits(Commits):
    """Each micro-batch with input is a commit."""

    def _is_commit(self, entry: dict[str, Any]) -> bool:
        return entry["event"] == "progress" and bool(entry["progress"]["numInputRows"])


class BatchReads(Reads):
    """Each micro-batch tells how many records it read."""

    def take(self, entry: dict[str, Any]) -> None:
        if entry["event"] == "progress" and entry["progress"]["numInputRows"]:
            self.counts.append((entry["at_ns"], self.counts[-1][1] + records_read(entry["progress"])))


class StructuredStreaming(Engine):
    """The engine `structured-streaming` for a workload of this project."""

    def check(self) -> None:
        """The workload comes with this project, so that nothing can be missing."""

    def submission(self, handle: Handle, run: Run) -> list[str]:
        event_log = run.raw / EVENT_LOG
        document = job_config(self.experiment, handle, checkpoint=checkpoint_of(handle), event_log=event_log)
        return self._submit_driver(PROGRAMS / "streaming" / "driver.py", document, handle, run)

    def pace(self) -> Pace:
        return BatchPace(self.experiment.workload.input_topics)

    def commits(self) -> Commits:
        return BatchCommits()

    def reads(self) -> Reads:
        return BatchReads()


def job_config(experiment: Experiment, handle: Handle, *, checkpoint: Path, event_log: Path) -> dict[str, Any]:
    """The query driver's configuration, as `spark_jobs.streaming.job.JobConfig` reads it."""
    return {
        "broker": handle.kafka.to_json(),
        "master": handle.master,
        "workload": experiment.workload.model_dump(mode="json"),
        "engine": experiment.engine.model_dump(mode="json", exclude=set(OF_THE_TESTBED)),
        "workers": experiment.cluster.workers,
        "cores": experiment.cores,
        "checkpoint": str(checkpoint),
        "event_log": str(event_log),
    }


def checkpoint_of(handle: Handle) -> Path:
    """The folder of a query's checkpoints, which every host sees."""
    return Path(handle.root) / STORE / "checkpoint"
