"""What the oracle of an own job is given of the job's output."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from experiments.engines import EngineName, EngineSpec
from experiments.loads import LoadSpec
from experiments.workloads.catalogue import OwnJobSpec
from infra.broker import Broker
from journal.writer import Journal
from spark_jobs.tables import archive
from tests.unit.example_events import batch_committed

JOB = OwnJobSpec(program="job.py", inputs={"orders": {"file": "orders.txt"}}, output_topic="totals", oracle="oracle.py")
ORACLE = """
from pyspark.sql import functions as F


def exact(records):
    totals = records.agg(F.count("*").alias("value"))
    return totals.selectExpr("0 AS start_ms", "1000 AS end_ms", "'all' AS key", "value")


def results(output):
    last = output.groupBy("key").agg(F.max_by("value", F.struct("timestamp", "offset")).alias("value"))
    return last.selectExpr("0 AS start_ms", "1000 AS end_ms", "CAST(key AS STRING) AS key", "value")
"""


def test_the_oracle_of_a_job_in_mode_update_can_keep_the_last_message_of_each_key(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = "topic STRING, partition INT, offset LONG, timestamp TIMESTAMP, key BINARY, value BINARY"
    told = {"orders": [b"a", b"b", b"c"], "totals": [b"1", b"2", b"3"]}

    def topics(_spark: SparkSession, _broker: Broker, names: list[str], _until: str) -> DataFrame:
        rows = [(name, 0, at, None, b"all", value) for name in names for at, value in enumerate(told[name])]
        return spark.createDataFrame(rows, columns).withColumn("timestamp", F.timestamp_millis(F.lit(500)))

    monkeypatch.setattr(archive, "_topics", topics)
    (tmp_path / "oracle.py").write_text(ORACLE, encoding="utf-8")
    Journal(tmp_path / "query.jsonl").record(batch_committed(sources=[{"endOffset": {"orders": {"0": 3}}}]))
    engine = EngineSpec(name=EngineName.STRUCTURED_STREAMING)
    archive.archive(spark, tmp_path, Broker(""), JOB, engine, LoadSpec())
    exact, written = (pq.read_table(tmp_path / f"{name}.parquet").to_pylist() for name in ("oracle", "sink"))
    assert written == exact == [{"start_ms": 0, "end_ms": 1000, "key": "all", "value": "3"}]
