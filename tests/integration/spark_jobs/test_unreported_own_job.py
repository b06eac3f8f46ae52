"""Of an own job, too, what its last driver did not report is made up, by the checkpoint that the job has named."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from experiments.waiting import poll_until
from journal.events.query import QUERY, BatchCommitted, QueryReady
from journal.reader import events
from journal.writer import Journal
from spark_jobs.streaming.own_job import Sessions
from spark_jobs.streaming.progress import MicroBatch

BATCHES, LIMIT_S = 3, 120.0


def started(spark: SparkSession, folder: Path) -> StreamingQuery:
    numbers = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    writer = numbers.writeStream.format("parquet").option("path", str(folder / "numbers"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(processingTime="1 second").start()


def test_a_batch_that_the_driver_before_has_not_reported_is_told_before_the_query_is_ready(
    spark: SparkSession, tmp_path: Path
) -> None:
    first = started(spark, tmp_path)
    try:
        assert poll_until(lambda: len(first.recentProgress) >= BATCHES, interval_s=0.2, limit_s=LIMIT_S)
    finally:
        first.stop()
    reports = {(report := json.loads(each.json))["batchId"]: report for each in first.recentProgress}
    names = [each.name for each in (tmp_path / "checkpoint" / "commits").iterdir()]
    committed = sorted(int(name) for name in names if name.isdigit())
    journal = Journal(tmp_path / "query.jsonl")
    journal.record(BatchCommitted(reports[committed[0]]))
    Sessions(spark.sparkContext.master, journal).notice(spark)
    again = started(spark, tmp_path)
    try:
        told = list(events(journal.path, QUERY))
        ready = next(place for place, each in enumerate(told) if isinstance(each, QueryReady))
        before = [MicroBatch.of(each).batch_id for each in told[:ready] if isinstance(each, BatchCommitted)]
        assert before == committed
    finally:
        again.stop()
