"""A batch that its driver did not report is made up by the checkpoint that Spark wrote, as Spark reported it.

Of an own job, too, whose checkpoint the job has named.
"""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from experiments.waiting import poll_until
from journal.events.query import QUERY, BatchCommitted, QueryReady
from journal.reader import events
from journal.writer import Journal
from spark_jobs.streaming.own_job import Sessions
from spark_jobs.streaming.progress import MicroBatch
from spark_jobs.streaming.unreported import unreported

BATCHES, LIMIT_S = 4, 120.0
Reports = dict[int, dict[str, Any]]


def started(spark: SparkSession, folder: Path) -> StreamingQuery:
    numbers = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    writer = numbers.writeStream.format("parquet").option("path", str(folder / "numbers"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(processingTime="1 second").start()


@pytest.fixture(scope="module")
def ended(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reports]:
    """The folder of a query that has ended, and what Spark reported of its batches, by number."""
    folder = tmp_path_factory.mktemp("ended")
    query = started(spark, folder)
    try:
        assert poll_until(lambda: len(query.recentProgress) >= BATCHES, interval_s=0.2, limit_s=LIMIT_S)
    finally:
        query.stop()
    reports = (json.loads(each.json) for each in query.recentProgress)
    return folder, {report["batchId"]: report for report in reports}


def test_the_checkpoint_of_a_query_tells_what_its_last_report_would_have(ended: tuple[Path, Reports]) -> None:
    folder, reports = ended
    *journalled, lost = [reports[number] for number in sorted(reports)]
    made_up = next(iter(unreported(folder / "checkpoint", map(BatchCommitted, journalled))))
    assert (made_up["id"], made_up["batchId"]) == (lost["id"], lost["batchId"])
    assert "commitOffsets" not in made_up["durationMs"], "only what is made up lacks it (`with_measured_cost`)"
    assert all("commitOffsets" in report["durationMs"] for report in reports.values())
    for source, own in zip(made_up["sources"], lost["sources"], strict=True):
        assert source == {name: own[name] for name in ("startOffset", "endOffset")}
    for moment in (_began_s, _ended_s):
        assert moment(made_up) == pytest.approx(moment(lost), abs=0.5)


def _began_s(report: dict[str, Any]) -> float:
    return datetime.fromisoformat(report["timestamp"]).timestamp()


def _ended_s(report: dict[str, Any]) -> float:
    return _began_s(report) + float(report["durationMs"]["triggerExecution"]) / 1000


def test_what_the_driver_of_an_own_job_has_not_reported_is_told_before_the_query_is_ready_again(
    spark: SparkSession, ended: tuple[Path, Reports], tmp_path: Path
) -> None:
    before, reports = ended
    folder = shutil.copytree(before, tmp_path / "again")
    names = [each.name for each in (folder / "checkpoint" / "commits").iterdir()]
    committed = sorted(int(name) for name in names if name.isdigit())
    journal = Journal(tmp_path / "query.jsonl")
    journal.record(BatchCommitted(reports[committed[0]]))
    Sessions(spark.sparkContext.master, journal).notice(spark)
    again = started(spark, folder)
    try:
        told = list(events(journal.path, QUERY))
        ready = next(place for place, each in enumerate(told) if isinstance(each, QueryReady))
        assert [MicroBatch.of(each).batch_id for each in told[:ready] if isinstance(each, BatchCommitted)] == committed
    finally:
        again.stop()
