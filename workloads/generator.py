"""The open-loop generator: sends every record when it is due, whatever the broker or the query does.

Record number p goes to partition p mod P at offset p div P and is due at start + p / rate; its Kafka timestamp
is that due time, so that an outage shows in the latency of every record that had to wait.
Run as a service: `python -m workloads.generator CONFIG.json JOURNAL.jsonl`.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from confluent_kafka import Producer

from experiments.spec import WorkloadSpec
from infra.journal import Journal
from workloads.schedule import Schedule
from workloads.wordcount import corpus

TICK_S = 0.02
POLL_EVERY = 1000  # records between two looks at the broker's answers
SETTINGS = {"linger.ms": 20, "batch.num.messages": 50_000, "queue.buffering.max.messages": 2_000_000, "acks": "1"}


class Feed:
    """Sends the passages of a text, cycled, to a topic on a schedule."""

    def __init__(self, broker: str, topic: str, texts: Sequence[bytes], schedule: Schedule) -> None:
        self.topic, self.texts, self.schedule = topic, texts, schedule
        self.sent = self.failed = 0
        self._producer = Producer({"bootstrap.servers": broker, **SETTINGS})

    def send_until(self, position: int) -> None:
        """Send every record before `position` that was not sent yet."""
        texts, schedule = self.texts, self.schedule
        for p in range(self.sent, position):
            self._produce(texts[p % len(texts)], p % schedule.partitions, schedule.due_ms(p))
            if p % POLL_EVERY == 0:
                self._producer.poll(0)
        self.sent = max(self.sent, position)
        self._producer.poll(0)

    def _produce(self, text: bytes, partition: int, due_ms: int) -> None:
        while True:
            try:
                self._producer.produce(self.topic, text, partition=partition, timestamp=due_ms, on_delivery=self._done)
                return
            except BufferError:
                self._producer.poll(0.1)

    def finish(self, limit_s: float = 30.0) -> None:
        self._producer.flush(limit_s)

    def _done(self, error: object, _message: object) -> None:
        if error is not None:
            self.failed += 1


def run(config: dict, journal: Journal) -> None:
    """Send on schedule until SIGTERM; the journal says every second what was due, sent and refused."""
    schedule = Schedule(**config["schedule"])
    feed = Feed(config["broker"], config["topic"], corpus.passages(WorkloadSpec(**config["workload"])), schedule)
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    journal.write("started", **asdict(schedule))
    next_line = time.monotonic()
    while not stopping:
        feed.send_until(schedule.due_count(time.time_ns()))
        if time.monotonic() >= next_line:
            next_line += 1.0
            _report(journal, feed)
        time.sleep(TICK_S)
    feed.finish()
    _report(journal, feed)


def _report(journal: Journal, feed: Feed) -> None:
    now = time.time_ns()
    journal.write("sent", now, due=feed.schedule.due_count(now), sent=feed.sent, failed=feed.failed)


def main() -> None:
    config_path, journal_path = map(Path, sys.argv[1:])
    run(json.loads(config_path.read_text(encoding="utf-8")), Journal(journal_path))


if __name__ == "__main__":
    main()
