"""The streaming query of an experiment: Kafka to Kafka, one checkpoint per trigger interval."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from experiments.recovery_modes import RecoveryMode
from experiments.spec import TriggerMode
from infra.broker import Broker
from spark_jobs.kafka_clients import CONSUMER, GATHERING_PRODUCER
from spark_jobs.streaming.config import JobConfig
from workloads.queries import query
from workloads.results import messages

# An executor lives for tens of seconds here: the second compiler would cost it more than it could win back.
EXECUTOR_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def session(config: JobConfig) -> SparkSession:
    """The Spark session of the query; master, memory and class paths come from spark-submit."""
    settings = {
        "spark.sql.shuffle.partitions": config.engine.partitions,
        **STATE_SETTINGS,
        "spark.locality.wait": "0s",
        "spark.task.maxFailures": 1 if config.engine.recovery_run is RecoveryMode.QUERY else 100,
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": config.event_log,
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.executor.extraJavaOptions": EXECUTOR_OPTIONS,
    }
    builder = SparkSession.builder.appName("aftershock")
    for name, value in settings.items():
        builder = builder.config(name, str(value))
    return builder.getOrCreate()


def live_executors(spark: SparkSession) -> set[str]:
    """Ids of the executors that the scheduler holds to be alive."""
    ids = spark.sparkContext._jsc.sc().getExecutorIds()
    return {ids.apply(i) for i in range(ids.size())}


def start(
    spark: SparkSession,
    config: JobConfig,
    *,
    input_topic: str,
    output_topic: str,
    checkpoint: str,
    interval_s: float,
    batch_records: int | None,
) -> StreamingQuery:
    """Start the query from its last checkpoint.

    One micro-batch of at most `batch_records` records per `interval_s`; in real-time mode batches of that length, which
    emit each record as it comes and take no bound on their records.
    """
    results = query(records_of(spark, config.broker, input_topic, batch_records), config.workload)
    interval, real_time = f"{round(interval_s * 1000)} milliseconds", config.engine.trigger is TriggerMode.REAL_TIME
    writer = to_topic(results, config.broker, output_topic, at_once=real_time).option("checkpointLocation", checkpoint)
    if real_time:
        # PySpark's overloads lack this trigger, which the method itself has.
        triggered = writer.outputMode("update").trigger(realTime=interval)  # type: ignore[call-overload]
    else:
        triggered = writer.outputMode("append").trigger(processingTime=interval)
    started: StreamingQuery = triggered.start()
    return started


def records_of(spark: SparkSession, broker: Broker, topic: str, batch_records: int | None = None) -> DataFrame:
    """The records of a topic from its beginning on, at most `batch_records` in a micro-batch."""
    reader = spark.readStream.format("kafka").options(**broker.for_spark(), **CONSUMER)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    if batch_records:
        reader = reader.option("maxOffsetsPerTrigger", batch_records)
    return reader.load()


def to_topic(results: DataFrame, broker: Broker, topic: str, *, at_once: bool = False) -> DataStreamWriter:
    """Writes results (`workloads.results`) as messages; `at_once`: none waits for others, where no batch ends soon."""
    settings = {} if at_once else GATHERING_PRODUCER
    writer = messages(results).writeStream.format("kafka").options(**broker.for_spark(), **settings)
    return writer.option("topic", topic)
