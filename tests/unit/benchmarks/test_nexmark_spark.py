"""The window in which a query on Spark is measured, without Spark."""

from __future__ import annotations

import json
import os
import time
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from benchmarks.engines import local_spark, nexmark_spark
from benchmarks.engines.nexmark_spark import Cut, FailedRow, Row, Session, Topic, watched, window_of
from experiments.errors import BadInput, EnvironmentFailure
from experiments.workloads.catalogue import NexmarkQuery
from spark_jobs.streaming.progress import MicroBatch

ROW = Row("q0", "whole", records=600, measured_s=2.0, cpu_s=3.0, batches=3, results=552, load_1min=1.0)


def progress(batch: int, start: int, end: int, *, ran: bool = True) -> SimpleNamespace:
    """A report of a micro-batch that read a topic of one partition."""
    report = {
        "id": "query",
        "batchId": batch,
        "timestamp": "2026-11-24T00:00:00.000Z",
        "numInputRows": end - start,
        "durationMs": {"triggerExecution": 100} if ran else {"latestOffset": 1},
        "stateOperators": [],
        "sources": [{"startOffset": {"input": {"0": start}}, "endOffset": {"input": {"0": end}}}],
    }
    return SimpleNamespace(json=json.dumps(report))


def batches(*ends: int) -> list[MicroBatch]:
    starts = (0, *ends)
    found = [progress(n, start, end) for n, (start, end) in enumerate(zip(starts, ends, strict=False))]
    return [MicroBatch.model_validate_json(each.json) for each in found]


class Query:
    """A streaming query whose reports are given: first those that are looked at, one a look, then all."""

    isActive = True

    def __init__(self, looks: list[SimpleNamespace | None], ends: bool = True) -> None:
        self._looks, self._ends = iter(looks), ends
        self.recentProgress = [each for each in looks if each is not None]

    @property
    def lastProgress(self) -> SimpleNamespace | None:
        return next(self._looks, None)

    def awaitTermination(self, timeout: float) -> bool:
        self.recentProgress = [progress(0, 0, 100), progress(1, 100, 200), progress(2, 200, 250)]
        return self._ends


def test_the_first_batch_is_not_in_the_window():
    window = window_of(batches(100, 200, 250), first=0, events=250)
    assert [each.records_read for each in window] == [100, 50]


def test_a_batch_that_is_not_looked_at_in_time_is_not_in_the_window_either():
    window = window_of(batches(100, 200, 250), first=1, events=250)
    assert [each.records_read for each in window] == [50]


def test_records_that_were_not_read_are_told():
    with pytest.raises(EnvironmentFailure, match="read 250 of 251"):
        window_of(batches(100, 200, 250), first=0, events=251)


def test_one_batch_is_no_window():
    with pytest.raises(BadInput, match="several"):
        window_of(batches(250), first=0, events=250)


class Clock:
    """A clock that goes on only in sleeps and where a test moves it."""

    def __init__(self, monkeypatch):
        self.now_s = 10.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(time, "sleep", self.go_on)

    def go_on(self, seconds):
        self.now_s += seconds


def test_the_window_begins_when_a_batch_has_run(monkeypatch):
    clock, cpu = Clock(monkeypatch), iter([3.0, 9.0])

    def cpu_s_while_time_goes_on():
        clock.go_on(4.0)
        return next(cpu)

    query = Query([None, progress(0, 0, 0, ran=False), progress(0, 0, 100)])
    found, first, seconds, cpu_s = watched(query, cpu_s_while_time_goes_on)
    assert (len(found), first, seconds, cpu_s) == (3, 0, 4.0, 6.0)


def test_a_query_that_does_not_end_is_told():
    with pytest.raises(EnvironmentFailure, match="has not ended"):
        watched(Query([progress(0, 0, 100)], ends=False), lambda: 0.0)


def test_a_query_whose_first_batch_does_not_end_is_told(monkeypatch):
    monkeypatch.setattr(nexmark_spark, "POLL_S", 1.0)
    clock = Clock(monkeypatch)
    with pytest.raises(EnvironmentFailure, match="has not ended"):
        watched(Query([], ends=False), lambda: 0.0)
    assert clock.now_s < 2 * nexmark_spark.LIMIT_S


def test_rates_are_by_the_clock_and_by_cpu_time():
    assert str(ROW).split() == ["q0", "whole", "300", "200", "1.50", "600", "552", "3", "1"]
    assert len(nexmark_spark.HEAD.split()) == 10  # "a core" is two words


class Starting:
    """Starts a query that is given, whatever its settings are."""

    def __init__(self, running) -> None:
        self._running = running

    def option(self, *given):
        return self

    def outputMode(self, mode):
        return self

    def trigger(self, **given):
        return self

    def start(self):
        return self._running


class Failing(Query):
    """A query that is over only when it is stopped, or ends with an error."""

    def __init__(self, error: PySparkException | None = None) -> None:
        super().__init__([progress(0, 0, 100)], ends=False)
        self.stopped, self._error = False, error

    def awaitTermination(self, timeout: float) -> bool:
        if self._error:
            raise self._error
        return super().awaitTermination(timeout)

    def stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (Failing(), "a query has not ended after 900 s"),
        (Failing(StreamingQueryException("out of memory\n  at java.lang")), "out of memory"),
    ],
)
def test_a_query_that_fails_is_stopped_and_has_a_row(query, why, monkeypatch, tmp_path):
    monkeypatch.setattr(nexmark_spark.kafka, "create_topics", lambda *given: None)
    monkeypatch.setattr(nexmark_spark, "cpu_s", lambda spark: 1.0)
    monkeypatch.setattr(Session, "_writer", lambda *given: Starting(query))
    row = Session(None, Topic(None, 100, 1000.0, 1), 100, tmp_path).attempt(NexmarkQuery.Q4, Cut.WHOLE)
    assert query.stopped
    assert isinstance(row, FailedRow)
    assert str(row).split(maxsplit=2)[:2] == ["q4", "whole"]
    assert row.error.startswith(why)
    assert "\n" not in row.error


class Loading(Query):
    """A query that loads the machine."""

    load = 2.0

    def awaitTermination(self, timeout: float) -> bool:
        Loading.load = 99.0
        return super().awaitTermination(timeout)

    def stop(self) -> None: ...


def test_a_row_has_the_load_before_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(Loading, "load", 2.0)
    monkeypatch.setattr(os, "getloadavg", lambda: (Loading.load, 0.0, 0.0))
    monkeypatch.setattr(nexmark_spark.kafka, "create_topics", lambda *given: None)
    monkeypatch.setattr(nexmark_spark, "cpu_s", lambda spark: 1.0)
    monkeypatch.setattr(Session, "_writer", lambda *given: Starting(Loading([progress(0, 0, 100)])))
    row = Session(None, Topic(None, 250, 1000.0, 1), 100, tmp_path).measure(NexmarkQuery.Q0, Cut.READ)
    assert (row.load_1min, Loading.load, row.records) == (2.0, 99.0, 150)


def test_spark_keeps_the_reports_of_all_micro_batches():
    """By default it keeps a hundred, so that a run of more has lost records."""
    assert int(local_spark.settings_of(2)["spark.sql.streaming.numRecentProgressUpdates"]) >= 100_000
