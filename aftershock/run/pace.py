"""How far the query of a run has come, by its journal: the same for any engine, entry by entry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

from experiments.engines import EngineName, Protocol
from experiments.spec import Experiment
from spark_jobs.streaming.progress import offsets
from testbed.progress import events_read

REPORTS = 11  # of the testbed, two a second: its sources read in bursts, so their rate is taken over five seconds
STARTING, RECOVERING = "starting", "recovering"


class Pace(ABC):
    """An `journal.reader.Digest` of a query's journal.

    committed_records  of the input, since the query was first started; None before any
    records_per_s      of late; None where it is not known
    doing              "starting", "recovering", or where it is
    """

    def __init__(self) -> None:
        self.committed_records: int | None = None
        self.records_per_s: float | None = None
        self.doing = STARTING

    @abstractmethod
    def take(self, entry: dict[str, Any]) -> None: ...

    def __str__(self) -> str:
        return self.doing + ("" if self.records_per_s is None else f", {self.records_per_s:,.0f} records/s")


class Batches(Pace):
    """Of Structured Streaming, which tells of every batch that it has committed."""

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


class DataflowPace(Pace):
    """Of the testbed, which reports where its sources are, and tells when all output up to a line is out.

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


def pace_of(experiment: Experiment) -> Pace:
    """What to take the journal `query` of a run of this experiment into."""
    if experiment.engine.name is EngineName.DATAFLOW:
        return DataflowPace(commits=experiment.engine.protocol_run is not Protocol.NONE)
    return Batches(experiment.workload.input_topics)
