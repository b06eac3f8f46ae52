"""The open-loop generator: sends every record when it is due, whatever the broker or the query does.

Record number p goes to partition p mod P at offset p div P and is due at start + p / rate; its Kafka timestamp
is that due time, so that an outage shows in the latency of every record that had to wait.
Run as a service: `python -m workloads.generator CONFIG.json JOURNAL.jsonl`.
"""

from __future__ import annotations

import itertools
import json
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path

from confluent_kafka import Producer

from experiments.workloads import read_workload
from infra.journal import Journal
from workloads.inputs import Input, Keys, streams
from workloads.schedule import Schedule

TICK_S = 0.02
POLL_EVERY = 5000  # records between two looks at the broker's answers
SETTINGS = {"linger.ms": 20, "batch.num.messages": 50_000, "queue.buffering.max.messages": 2_000_000, "acks": "all"}
# When the broker dies and comes back, each partition must go on as if nothing had been: nothing twice, nothing swapped.
SETTINGS |= {"enable.idempotence": True, "reconnect.backoff.max.ms": 500}


class Feed:
    """Sends an input to a topic on a schedule, its records dealt to the partitions in turn."""

    def __init__(self, broker: str, topic: str, source: Input, schedule: Schedule, keys: Keys | None = None) -> None:
        self.topic, self.source, self.schedule, self._keys = topic, source, schedule, keys
        self.sent = self.failed = 0
        self._producer = Producer({"bootstrap.servers": broker, **SETTINGS})

    def send_until(self, position: int) -> None:
        """Send every record before `position` that was not sent yet."""
        while self.sent < position:
            stop = min(self.sent + POLL_EVERY, position)
            keys = self._keys(self.sent, stop) if self._keys else itertools.repeat(None)
            for p, (value, key) in enumerate(zip(self.source(self.sent, stop), keys, strict=False), self.sent):
                self._produce(value, key, p % self.schedule.partitions, self.schedule.due_ms(p))
            self.sent = stop
            self._producer.poll(0)

    def _produce(self, text: bytes, key: bytes | None, partition: int, due_ms: int) -> None:
        place = {"partition": partition, "timestamp": due_ms}
        while True:
            try:
                self._producer.produce(self.topic, text, key, on_delivery=self._done, **place)
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
    found = streams(read_workload(config["workload"]), schedule)
    feeds = [Feed(config["broker"], each.topic, each.values, each.schedule, each.keys) for each in found]
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    journal.write("started", **asdict(schedule))
    next_line = time.monotonic()
    while not stopping:
        for feed in feeds:
            feed.send_until(feed.schedule.due_count(time.time_ns()))
        if time.monotonic() >= next_line:
            next_line += 1.0
            _report(journal, schedule, feeds)
        time.sleep(TICK_S)
    for feed in feeds:
        feed.finish()
    _report(journal, schedule, feeds)


def _report(journal: Journal, schedule: Schedule, feeds: list[Feed]) -> None:
    now = time.time_ns()
    sent, failed = sum(feed.sent for feed in feeds), sum(feed.failed for feed in feeds)
    journal.write("sent", now, due=schedule.due_count(now), sent=sent, failed=failed)


def main() -> None:
    config_path, journal_path = map(Path, sys.argv[1:])
    run(json.loads(config_path.read_text(encoding="utf-8")), Journal(journal_path))


if __name__ == "__main__":
    main()
