"""A minimal foreign engine: writes each bid a given number of times, for a whole second at once.

`copying_engine.py BROKER CREDENTIALS INPUT OUTPUT PARTITIONS TIMES`. Knows nothing of this project.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition


def main() -> None:
    address, credentials, source, output, partitions, times = sys.argv[1:]
    settings = dict(line.split("=", 1) for line in Path(credentials).read_text().splitlines())
    settings["bootstrap.servers"] = address
    consumer = Consumer({**settings, "group.id": "copying"})
    consumer.assign([TopicPartition(source, number, 0) for number in range(int(partitions))])
    producer = Producer(settings)
    while True:
        for message in consumer.consume(10_000, 1.0):
            if message.error() is None and json.loads(message.value())["kind"] == "bid":
                due_ms, place = message.timestamp()[1], f"{message.partition()}:{message.offset()}"
                result = {"start_ms": due_ms, "end_ms": due_ms, "key": place, "value": ""}
                for _ in range(int(times)):
                    producer.produce(output, json.dumps(result).encode())
        producer.flush()


if __name__ == "__main__":
    main()
