"""Measures how fast the query runs undisturbed, so that one micro-batch fills one checkpoint interval.

Works on a topic and a checkpoint of its own. The result sizes the batches and the saturating load, and its
service rate is the yardstick of the second utilization estimate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from infra.journal import Journal
from spark_jobs.streaming.job import JobConfig, start
from workloads.generator import Feed, Schedule
from workloads.wordcount import corpus

WARM_RECORDS = 20_000
WARM_BATCHES = 4
FULL_BATCHES = 2
FILL = 0.95  # of the interval: leaves room for the spread of batch durations
LOAD_FACTOR = 1.25  # a saturating source is this much faster than the query


@dataclass(frozen=True)
class Calibration:
    """Service rate [records/s of processing], cost outside processing [s/batch], and the batch that fills an interval."""

    service_rate: float
    overhead_s: float
    batch_records: int
    load_rate: float


def calibrate(spark: SparkSession, config: JobConfig, journal: Journal) -> Calibration:
    """Warm the executors up, then refine the service rate on batches of about one interval."""
    interval_s = config.engine.checkpoint_interval_s
    rough = _measure(spark, config, journal, "warm", WARM_RECORDS, WARM_BATCHES, float(WARM_RECORDS))
    result = _sized(rough, interval_s)
    for name in ("first", "second"):
        measured = _measure(spark, config, journal, name, result.batch_records, FULL_BATCHES, result.load_rate)
        result = _sized(measured, interval_s)
    journal.write("calibrated", **result.__dict__)
    return result


def _sized(measured: list[tuple[int, float, float]], interval_s: float) -> Calibration:
    """From (records, duration [s], overhead [s]) of warm batches."""
    records, duration, overhead = (sum(column) / len(measured) for column in zip(*measured, strict=True))
    rate = records / (duration - overhead)
    batch = max(1, int(rate * max(interval_s * FILL - overhead, 0.1 * interval_s)))
    return Calibration(rate, overhead, batch, LOAD_FACTOR * rate)


def _measure(
    spark: SparkSession, config: JobConfig, journal: Journal, name: str, records: int, batches: int, rate: float
) -> list[tuple[int, float, float]]:
    """Run `batches` batches of `records` on a topic of their own; returns those after the first."""
    topic = f"calibration-{name}"
    count = records * batches
    schedule = Schedule(time.time_ns() - int(count / rate * 1e9), rate, config.engine.partitions)
    feed = Feed(config.broker, topic, corpus.lines(config.workload), schedule)
    feed.send_until(count)
    feed.finish()
    checkpoint = f"{config.checkpoint}-{topic}"
    running = start(
        spark, config, input_topic=topic, output_topic="calibration-output", checkpoint=checkpoint, batch_records=records,
        interval_s=0.0,
    )
    found: dict[int, tuple[int, float, float]] = {}
    while len(found) < batches:
        for progress in running.recentProgress:
            if progress["numInputRows"]:
                found[progress["batchId"]] = _timing(progress, config.cores)
        if running.exception():
            raise running.exception()
        time.sleep(0.1)
    running.stop()
    journal.write("calibration", name=name, batches=list(found.values()))
    return [found[key] for key in sorted(found)][1:]


def _timing(progress: Any, cores: int) -> tuple[int, float, float]:
    durations = progress["durationMs"]
    duration_ms = durations["triggerExecution"]
    commits_ms = sum(operator["commitTimeMs"] for operator in progress["stateOperators"])
    return progress["numInputRows"], duration_ms / 1e3, (duration_ms - durations["addBatch"] + commits_ms / cores) / 1e3
