"""What is made up of a batch by the checkpoint that Spark wrote is what Spark reported of it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from experiments.waiting import poll_until
from journal.events.query import BatchCommitted
from spark_jobs.streaming.unreported import unreported

BATCHES, LIMIT_S = 4, 120.0


def test_the_checkpoint_of_a_query_tells_what_its_last_report_would_have(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    numbers = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    writer = numbers.writeStream.format("parquet").option("path", str(tmp_path / "numbers"))
    running = writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="1 second").start()
    try:
        assert poll_until(lambda: len(running.recentProgress) >= BATCHES, interval_s=0.2, limit_s=LIMIT_S)
    finally:
        running.stop()
    reports = {(report := json.loads(each.json))["batchId"]: report for each in running.recentProgress}
    *journalled, lost = [reports[number] for number in sorted(reports)]
    made_up = next(iter(unreported(checkpoint, map(BatchCommitted, journalled))))
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
