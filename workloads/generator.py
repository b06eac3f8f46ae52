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
from dataclasses import asdict
from pathlib import Path

from confluent_kafka import Producer

from experiments.workloads import read_workload
from infra.journal import Journal
from workloads.inputs import Input, records
from workloads.schedule import Schedule

TICK_S = 0.02
POLL_EVERY = 5000  # records between two looks at the broker's answers
SETTINGS = {"linger.ms": 20, "batch.num.messages": 50_000, "queue.buffering.max.messages": 2_000_000, "acks": "all"}
# When the broker dies and comes back, each partition must go on as if nothing had been: nothing twice, nothing swapped.
SETTINGS |= {"enable.idempotence": True, "reconnect.backoff.max.ms": 500}


class Feed:
    """Sends an input to a topic on a schedule."""

    def __init__(self, broker: str, topic: str, source: Input, schedule: Schedule) -> None:
        self.topic, self.source, self.schedule = topic, source, schedule
        self.sent = self.failed = 0
        self._producer = Producer({"bootstrap.servers": broker, **SETTINGS})

    def send_until(self, position: int) -> None:
        """Send every record before `position` that was not sent yet."""
        while self.sent < position:
            stop = min(self.sent + POLL_EVERY, position)
            for p, value in enumerate(self.source(self.sent, stop), self.sent):
                self._produce(value, p % self.schedule.partitions, self.schedule.due_ms(p))
            self.sent = stop
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
    source = records(read_workload(config["workload"]), schedule)
    feed = Feed(config["broker"], config["topic"], source, schedule)
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
