"""NexMark's queries as streams over files, in several batches, against their oracles: every record, once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from spark_jobs.streaming.progress import MicroBatch
from spark_jobs.tables.quality import closed, quality
from spark_jobs.tables.rows import closed_until_ms
from tests.integration.input_topics import SCHEMA, rows_of
from workloads.nexmark import messages
from workloads.queries import oracle, query
from workloads.schedule import Schedule

pytestmark = pytest.mark.extended

EVENTS, RATE, PARTITIONS, FILES = 6000, 200.0, 2, 3
START_NS = 1_795_173_799_675_000_000
SHORT = {"window_s": 4.0, "slide_s": 2.0}  # half a minute of events has many windows of this length
FEWEST = 5  # results by which a query can be judged


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that stands for the input topic: each file is what one micro-batch reads."""
    folder = tmp_path_factory.mktemp("topic")
    schedule = Schedule(START_NS, RATE, PARTITIONS)
    values = messages.records(NexmarkSpec(**SHORT), schedule)(0, EVENTS)
    rows = rows_of(values, schedule)
    size = EVENTS // FILES
    for number in range(FILES):
        columns = zip(*rows[number * size : (number + 1) * size], strict=True)
        names = ("value", "partition", "offset", "timestamp")
        types = (pa.binary(), pa.int32(), pa.int64(), pa.timestamp("us", "UTC"))
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        pq.write_table(pa.table(dict(zip(names, arrays, strict=True))), folder / f"{number}.parquet")
    return folder


def streamed(spark: SparkSession, topic: Path, spec: NexmarkSpec, folder: Path) -> tuple[DataFrame, int]:
    """What the query wrote, and its last watermark [ms]."""
    records = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(topic))
    writer = query(records, spec).writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    running = writer.trigger(availableNow=True).start(str(folder / "sink"))
    running.awaitTermination(300)
    assert running.exception() is None
    progress = running.recentProgress
    assert {len(each["sources"]) for each in progress} == {1}, "a join reads the topic once"
    assert sum(each["numInputRows"] > 0 for each in progress) == FILES
    batches = [MicroBatch.model_validate_json(each.json) for each in progress]
    return spark.read.parquet(str(folder / "sink")), closed_until_ms(batches) or 0


@pytest.mark.parametrize("name", list(NexmarkQuery))
def test_every_result_is_exact(spark: SparkSession, topic: Path, tmp_path: Path, name: NexmarkQuery) -> None:
    spec = NexmarkSpec(query=name, **SHORT)
    sink, watermark_ms = streamed(spark, topic, spec, tmp_path)
    exact = oracle(spark.read.schema(SCHEMA).parquet(str(topic)), spec)
    final = closed(spec, watermark_ms, {"input": {str(p): EVENTS // PARTITIONS for p in range(PARTITIONS)}})
    judged = [row.asDict() for row in quality(sink, exact, final).collect()]
    totals = {part: sum(row[part] for row in judged) for part in ("exact", "emitted", "lost", "duplicated", "wrong")}
    assert totals["exact"] == totals["emitted"] >= FEWEST
    assert (totals["lost"], totals["duplicated"], totals["wrong"]) == (0, 0, 0)
