"""Saves input, output and exact output of a run from the broker.

raw/input.parquet   topic, partition, offset, due_ms  of every record that the query has committed
raw/sink.parquet    start_ms, end_ms, key, value      of every record in the output topic, copies included (of changes
                    arrived_ms                        their sums), and when it was handed to the sink's producer
raw/tentative.parquet  batch and the columns of sink  of every record in the topic of tentative output, if there is one
raw/oracle.parquet  start_ms, end_ms, key, value      exactly what should be there, windows still open included

Without an oracle, the meaning of an own job's output is unknown: raw/sink.parquet has its key and value as they are.

A message that is missing or that can't be used ends the job with its topic, partition and offset: the exact output
would silently lack it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from experiments.engines import EngineName, EngineSpec
from experiments.errors import EnvironmentFailure
from experiments.loads import LoadSpec
from experiments.workloads.base import INPUT
from experiments.workloads.catalogue import NexmarkSpec, OwnJobSpec, WorkloadSpec
from infra.broker import Broker
from journal.events.query import QUERY
from journal.events.testbed import TESTBED, Finished
from journal.reader import events
from spark_jobs.kafka_clients import CONSUMER
from spark_jobs.streaming.progress import micro_batches
from spark_jobs.tables.batched_messages import Ends, in_messages, input_records, result_records
from spark_jobs.tables.complete_input import require_all
from testbed.source_positions import offsets as offsets_of_sources
from workloads import own_job
from workloads.queries import collected, oracle
from workloads.results import SCHEMA, read
from workloads.topics import TENTATIVE_OUTPUT


def committed_offsets(raw: Path, engine: EngineName) -> Ends:
    """How far the query has read each partition of each topic, by its last committed batch or at its end."""
    journal = raw / "query.jsonl"
    if engine is EngineName.DATAFLOW:
        ends = [event.positions for event in events(journal, TESTBED) if isinstance(event, Finished)]
        return {INPUT: offsets_of_sources(ends[-1])} if ends else {}
    batches = list(micro_batches(events(journal, QUERY)))
    found: Ends = {}
    for (topic, partition), (_, end) in batches[-1].offsets.items() if batches else ():
        found.setdefault(topic, {})[partition] = end
    return found


def archive(
    spark: SparkSession, raw: Path, broker: Broker, workload: WorkloadSpec, engine: EngineSpec, load: LoadSpec
) -> None:
    """Write the files.

    Raises `EnvironmentFailure` when the query committed nothing of what it was sent, and for a message that is missing.
    For a message that can't be used Spark raises an error of its own (`bad_messages`).
    """
    ends = {
        topic: ends for topic, ends in committed_offsets(raw, engine.name).items() if topic in workload.input_topics
    }
    if not ends:
        raise EnvironmentFailure("the query committed nothing in this run", "see the query's log for why")
    records = _input(spark, broker, ends, load.batch_records)
    due = records.select("topic", "partition", "offset", F.unix_millis("timestamp").alias("due_ms"))
    due.write.parquet(str(raw / "input.parquet"))
    require_all(spark.read.parquet(str(raw / "input.parquet")), ends, load.batch_records)
    own = workload if isinstance(workload, OwnJobSpec) else None
    if workload.has_oracle:
        exact = own_job.applied(raw / own_job.ORACLE, "exact", records) if own else oracle(records, workload)
        exact.write.parquet(str(raw / "oracle.parquet"))
        spark.catalog.clearCache()  # of what an oracle has kept, which nothing reads again
    if workload.output_topic:
        written = _results(_topics(spark, broker, [workload.output_topic], "latest"), workload, engine, load)
        sink = _own_sink(written, own, raw) if own else collected(_sink(written), workload)
        sink.write.parquet(str(raw / "sink.parquet"))
    if engine.tentative_run:
        written = _results(_topics(spark, broker, [TENTATIVE_OUTPUT], "latest"), workload, engine, load)
        tentative = _sink(written, f"{SCHEMA}, batch LONG")
        tentative.write.parquet(str(raw / "tentative.parquet"))


def _input(spark: SparkSession, broker: Broker, ends: Ends, batch_records: int | None) -> DataFrame:
    if batch_records is None:
        return _topics(spark, broker, list(ends), json.dumps(ends))
    messages = _topics(spark, broker, list(ends), json.dumps(in_messages(ends, batch_records)))
    return input_records(messages, ends, batch_records)


def _results(messages: DataFrame, workload: WorkloadSpec, engine: EngineSpec, load: LoadSpec) -> DataFrame:
    """Each result as a message of its own. Of Arrow batches only the value and the time are left."""
    if load.batch_records is None:
        return messages
    return result_records(messages, cast(NexmarkSpec, workload), engine.partitions)  # the spec refuses other workloads


def _sink(written: DataFrame, schema: str = SCHEMA) -> DataFrame:
    return read(written, F.unix_millis("timestamp").alias("arrived_ms"), schema=schema)


def _own_sink(written: DataFrame, job: OwnJobSpec, raw: Path) -> DataFrame:
    if not job.has_oracle:
        return written.select("key", "value")
    messages = written.select("partition", "offset", "timestamp", "key", "value")
    return own_job.applied(raw / own_job.ORACLE, "results", messages)


def _topics(spark: SparkSession, broker: Broker, topics: list[str], until: str) -> DataFrame:
    reader = spark.read.format("kafka").options(**broker.for_spark(), **CONSUMER).option("subscribe", ",".join(topics))
    reader = reader.option("kafka.isolation.level", "read_committed")  # the testbed writes in transactions
    return reader.option("startingOffsets", "earliest").option("endingOffsets", until).load()
