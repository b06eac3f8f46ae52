"""Events of the driver program of a Spark query (`spark_jobs.streaming`), built-in or own job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from journal.codec import Vocabulary
from journal.event import Event
from journal.events.common import DriverStarted, DriverStopped, ExecutorsLost


@dataclass(frozen=True)
class QueryStarted(Event, name="query-started"):
    """Spark started the query; `query_run` is Spark's id of this start."""

    query_run: str


@dataclass(frozen=True)
class QueryReady(Event, name="ready"):
    """The query runs on these executors."""

    executors: tuple[str, ...]


@dataclass(frozen=True)
class BatchCommitted(Event, name="progress"):
    """A micro-batch was committed. `progress` is Spark's report as Spark wrote it (`spark_jobs.streaming.progress`).

    If a driver died before it had the report, the next driver makes it up (`spark_jobs.streaming.unreported`).
    """

    progress: dict[str, Any]


@dataclass(frozen=True)
class QueryIdle(Event, name="query-idle"):
    """The query has found nothing to read."""

    query_run: str


@dataclass(frozen=True)
class QueryTerminated(Event, name="query-terminated"):
    """Spark's word that the query ended; `error` is None if it was stopped."""

    query_run: str
    error: str | None


@dataclass(frozen=True)
class QueryFailed(Event, name="query-failed"):
    """The driver program saw that the query failed."""

    error: str


@dataclass(frozen=True)
class BatchTiming:
    """One batch of a calibration: its records, how long it took and how much of that was its checkpoint [s]."""

    records: int
    duration_s: float
    overhead_s: float

    @property
    def rate(self) -> float:
        """Records per second of processing, which takes a millisecond at least: Spark tells times in whole ones."""
        return self.records / max(self.duration_s - self.overhead_s, 1e-3)


@dataclass(frozen=True)
class BatchesMeasured(Event, name="calibration"):
    """A part of the calibration, on the input in a topic, was measured."""

    topic: str
    batches: tuple[BatchTiming, ...]


@dataclass(frozen=True)
class QueryCalibrated(Event, name="calibrated"):
    """The calibration's result: rate [records/s of processing], cost outside it [s/batch], the batch that fills an
    interval, and the rate of a saturating load [records/s]."""

    service_rate: float
    overhead_s: float
    batch_records: int
    load_rate: float


QUERY: Vocabulary[Event] = Vocabulary(
    DriverStarted,
    DriverStopped,
    ExecutorsLost,
    QueryStarted,
    QueryReady,
    BatchCommitted,
    QueryIdle,
    QueryTerminated,
    QueryFailed,
    BatchesMeasured,
    QueryCalibrated,
)
