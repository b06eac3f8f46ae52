"""Measures how fast the query runs undisturbed, so that one micro-batch fills one checkpoint interval.

Works on topics and checkpoints of its own. The result sizes the batches and the saturating load.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from statistics import median
from typing import cast

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from experiments.loads import FULL_BATCHES, GETTING_FASTER_S
from experiments.workloads.catalogue import GeneratedSpec
from journal.events.query import BatchesMeasured, BatchTiming, QueryCalibrated
from journal.writer import Journal
from spark_jobs.calibration import Calibration
from spark_jobs.streaming.config import JobConfig
from spark_jobs.streaming.job import start
from spark_jobs.streaming.progress import MicroBatch
from workloads.inputs import records as input_of
from workloads.schedule import Schedule
from workloads.sending.input_sender import InputSender
from workloads.topics import CALIBRATION_OUTPUT, FULL, WARM

WARM_RECORDS, WARM_BATCHES = 20_000, 14  # batches run until their rate settles, at most these
SETTLED_BATCHES, SETTLED_WITHIN = 3, 0.15
CLOSE_ENOUGH = 0.1  # of the time that a batch shall take
USUALLY_FIXED = 0.5  # of the time of a batch of the warm-up: the word count's shows 0.5 to 0.6
MOST_FIXED = 0.6  # a line that shows more was drawn while the machine changed its pace
FILL = 0.95  # of the interval: leaves room for the spread of batch durations
LOAD_FACTOR = 1.25  # a saturating source is this much faster than the query
POLL_S = 0.1


def calibrate(spark: SparkSession, config: JobConfig, journal: Journal) -> Calibration:
    """Measure batches of the query on the executors that are there; `feed_warm_up` must have filled its topic."""
    target_s = batch_target_s(config)
    full_batches = batches_of(target_s)

    def measure(topic: str, records: int) -> list[BatchTiming]:
        is_enough = _is_warm
        if topic != WARM:
            count = records * full_batches
            _feed(config, topic, count, LOAD_FACTOR * records / target_s)
            is_enough = partial(_is_measured, full_batches, count)
        measured = _measure(spark, config, topic, records, is_enough)
        journal.record(BatchesMeasured(topic, tuple(measured)))
        return measured

    result = approach(measure, target_s)
    journal.record(QueryCalibrated(**asdict(result)))
    return result


def batch_target_s(config: JobConfig) -> float:
    """How long a batch shall take [s]."""
    return FILL * config.engine.checkpoint_interval_s


def batches_of(target_s: float) -> int:
    """How many full batches are measured: short ones for as long as the JVM gets faster with them."""
    return max(FULL_BATCHES, math.ceil(GETTING_FASTER_S / target_s))


def approach(measure: Callable[[str, int], list[BatchTiming]], target_s: float) -> Calibration:
    """Warm the executors up until their rate settles, then approach the batch that takes `target_s`.

    `measure`: runs batches of a given number of records on the input of a topic; the later half of them counts. A
    batch takes a fixed time besides its time per record, so a batch that is enlarged in proportion stays too small. The
    fixed time is guessed first, and then computed from the line through batches of two sizes.
    """
    found = _typical(measure(WARM, WARM_RECORDS)[-2:])
    records = _filling(found, target_s, USUALLY_FIXED)
    for topic in FULL:
        batches = measure(topic, records)
        before, found = found, _typical(batches[len(batches) // 2 :])
        if abs(found.duration_s / target_s - 1) <= CLOSE_ENOUGH:
            break
        records = _filling(found, target_s, _fixed(before, found))
    records = _filling(found, target_s, fixed=0.0)  # so close to it, in proportion is safe
    return Calibration(found.rate, found.overhead_s, LOAD_FACTOR * records / target_s, records)


def _filling(found: BatchTiming, target_s: float, fixed: float) -> int:
    """How many records take `target_s`, if that share of the time of a batch is fixed; fewer only in proportion."""
    more = target_s / found.duration_s - 1
    return max(1, round(found.records * (1 + (more / (1 - fixed) if more > 0 else more))))


def _fixed(before: BatchTiming, found: BatchTiming) -> float:
    """The share of the second batch's time that is fixed, by the line through two batches, as far as it is believed."""
    more, longer_s = found.records - before.records, found.duration_s - before.duration_s
    if more * longer_s <= 0:
        return 0.0  # the machine has changed its pace
    return min(max(1 - longer_s / more * found.records / found.duration_s, 0.0), MOST_FIXED)


def feed_warm_up(config: JobConfig) -> None:
    """Fill the topic of the warm-up, which needs no executors."""
    _feed(config, WARM, WARM_RECORDS * WARM_BATCHES, LOAD_FACTOR * WARM_RECORDS / batch_target_s(config))


def _feed(config: JobConfig, topic: str, count: int, rate: float) -> None:
    """Send `count` records, the last of them due now; raises `EnvironmentFailure` if the broker does not take all."""
    schedule = Schedule(time.time_ns() - round(count / rate * 1e9), rate, config.engine.partitions)
    workload = cast(GeneratedSpec, config.workload)  # an own job has a driver of its own, which does not calibrate
    feed = InputSender(config.broker, topic, input_of(workload, schedule), schedule)
    feed.send_until(count)
    feed.require(count)


def _typical(batches: list[BatchTiming]) -> BatchTiming:
    return BatchTiming(
        round(median(timing.records for timing in batches)),
        median(timing.duration_s for timing in batches),
        median(timing.overhead_s for timing in batches),
    )


def _measure(
    spark: SparkSession, config: JobConfig, topic: str, records: int, is_enough: Callable[[list[BatchTiming]], bool]
) -> list[BatchTiming]:
    """Run batches of `records` on a topic until there are enough of them."""
    running = start(
        spark,
        config,
        input_topic=topic,
        output_topic=CALIBRATION_OUTPUT,
        checkpoint=f"{config.checkpoint}-{topic}",
        interval_s=0.0,
        batch_records=records,
    )
    found: dict[int, BatchTiming] = {}
    while not is_enough(list(found.values())):
        if failure := running.exception():
            raise failure
        time.sleep(POLL_S)
        _gather(running, config, found)
    running.stop()
    return [found[batch] for batch in sorted(found)]


def _gather(running: StreamingQuery, config: JobConfig, found: dict[int, BatchTiming]) -> None:
    for progress in running.recentProgress:
        batch = MicroBatch.model_validate_json(progress.json)
        if batch.num_input_rows:
            found[batch.batch_id] = _timing(batch, config)


def _is_measured(number: int, records: int, batches: list[BatchTiming]) -> bool:
    """Whether there are so many batches, or the input of so many records is used up.

    Spark reads at least one record of each partition. So a batch may read more records than it was given as its
    limit.
    """
    return len(batches) >= number or sum(timing.records for timing in batches) >= records


def _is_warm(batches: list[BatchTiming]) -> bool:
    """Whether the service rate has settled, or the input of the warm-up is used up."""
    rates = [timing.rate for timing in batches[-SETTLED_BATCHES:]]
    settled = len(batches) > SETTLED_BATCHES and max(rates) - min(rates) <= SETTLED_WITHIN * min(rates)
    return settled or len(batches) >= WARM_BATCHES


def _timing(batch: MicroBatch, config: JobConfig) -> BatchTiming:
    overhead_ms = batch.checkpoint_ms(min(config.cores, config.engine.partitions))
    return BatchTiming(batch.records_read, batch.total_ms / 1e3, overhead_ms / 1e3)
