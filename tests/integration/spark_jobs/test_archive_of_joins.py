"""The archive of a query that joins: its oracle keeps the events that it has read, until the exact output is saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from experiments.engines import EngineName, EngineSpec
from experiments.loads import LoadSpec
from experiments.workloads.catalogue import NexmarkSpec
from infra.broker import Broker
from journal.events.testbed import Finished
from journal.writer import Journal
from spark_jobs.tables import archive
from tests.integration.input_topics import topic
from workloads.nexmark import messages
from workloads.schedule import Schedule
from workloads.topics import INPUT

pytestmark = pytest.mark.extended

PARTITIONS, EACH = 2, 300
SCHEDULE = Schedule(1_795_173_799_675_000_000, 500.0, PARTITIONS)


def test_nothing_is_kept_once_the_exact_output_is_saved(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = NexmarkSpec(query="q8")
    values = messages.records(spec, SCHEDULE)(0, PARTITIONS * EACH)
    records = topic(spark, values, SCHEDULE).withColumn("topic", F.lit(INPUT))
    monkeypatch.setattr(archive, "_topics", lambda *_: records)
    Journal(tmp_path / "query.jsonl").record(Finished({f"persons.{p}": EACH for p in range(PARTITIONS)}))
    broker = Broker("nowhere:1")
    archive.archive(spark, tmp_path, broker, spec, EngineSpec(name=EngineName.DATAFLOW), LoadSpec())
    assert spark.read.parquet(str(tmp_path / "oracle.parquet")).count() > 0
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()
