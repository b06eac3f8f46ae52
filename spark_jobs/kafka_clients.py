"""Settings of Spark's Kafka clients, whose defaults cost more than the records do (docs/lab/nexmark-spark.md)."""

CONSUMER = {
    "kafka.max.poll.records": "10000",  # of 500, Spark seeks again for each poll
    "kafka.max.partition.fetch.bytes": str(8 << 20),
}
GATHERING_PRODUCER = {  # a micro-batch flushes it at its end, so that no result waits for more of them
    "kafka.linger.ms": "20",
    "kafka.batch.size": str(256 << 10),
}
