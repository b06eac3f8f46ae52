"""Saves input, output and exact output of a run from the broker: `archive.py RESULT_DIRECTORY BROKER`.

raw/input.parquet   partition, offset, due_ms        of every record that the query has committed
raw/sink.parquet    start_ms, end_ms, key, value     of every record in the output topic, copies included,
                    arrived_ms                       and when it was handed to the sink's producer
raw/oracle.parquet  start_ms, end_ms, key, value     exactly what should be there, windows still open included
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from experiments.errors import EnvironmentFailure
from experiments.workloads import WorkloadSpec, read_workload
from infra.journal import read_journal
from spark_jobs.streaming.topics import INPUT, OUTPUT
from workloads.queries import oracle
from workloads.results import SCHEMA


def committed_offsets(raw: Path) -> dict[str, int]:
    """How far the query has read each partition, by its last committed batch."""
    batches = [entry["progress"] for entry in read_journal(raw / "query.jsonl") if entry["event"] == "progress"]
    return batches[-1]["sources"][0]["endOffset"][INPUT] if batches else {}


def archive(spark: SparkSession, raw: Path, broker: str, workload: WorkloadSpec) -> None:
    """Write the three files; raises `EnvironmentFailure` when the query committed nothing."""
    ends = committed_offsets(raw)
    if not ends:
        raise EnvironmentFailure("the query committed no batch in this run", "see the query's log for why")
    records = _topic(spark, broker, INPUT, json.dumps({INPUT: ends}))
    due = records.select("partition", "offset", F.unix_millis("timestamp").alias("due_ms"))
    due.write.parquet(str(raw / "input.parquet"))
    oracle(records, workload).write.parquet(str(raw / "oracle.parquet"))
    message = F.from_json(F.col("value").cast("string"), SCHEMA)
    arrived = F.unix_millis("timestamp").alias("arrived_ms")
    sink = _topic(spark, broker, OUTPUT, "latest").select(message.alias("message"), arrived)
    sink.select("message.*", "arrived_ms").write.parquet(str(raw / "sink.parquet"))


def _topic(spark: SparkSession, broker: str, topic: str, until: str) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
    return reader.option("startingOffsets", "earliest").option("endingOffsets", until).load()


def main() -> None:
    result, broker = Path(sys.argv[1]), sys.argv[2]
    experiment = json.loads((result / "experiment.json").read_text(encoding="utf-8"))
    spark = SparkSession.builder.appName("aftershock-archive").getOrCreate()
    try:
        archive(spark, result / "raw", broker, read_workload(experiment["workload"]))
    except EnvironmentFailure as error:
        sys.exit(f"Error: {error}")  # whoever reads this log looks for a line that names an error
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
