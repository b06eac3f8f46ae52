"""The open-loop generator: sends every record when it is due, whatever the broker or the query does.

Record number p goes to partition p mod P at offset p div P and is due at start + p / rate; its Kafka timestamp
is that due time, so that an outage shows in the latency of every record that had to wait.
Run as a service: `python -m workloads.generator CONFIG.json JOURNAL.jsonl`. Whoever writes another schedule into CONFIG
changes the load: the generator first sends what the one before made due, and goes on with the record after that.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias, cast

from confluent_kafka import Producer

from experiments.workloads import NexmarkSpec
from infra.broker import Broker
from journal.events.services import LoadRescheduled, LoadStarted, RecordsSent
from journal.writer import Journal
from workloads.batch_sender import BatchSender
from workloads.inputs import Input, Keys, TopicStream, sources
from workloads.load_config import LoadConfig
from workloads.producing import SETTINGS
from workloads.schedule import Schedule

TICK_S = 0.02
MOST_AT_ONCE = 50_000  # records of a feed until schedule and signals are looked at: some tenths of a second
POLL_EVERY = 5000  # records between two looks at the broker's answers


class InputSender:
    """Sends an input to a topic on a schedule, its records dealt to the partitions in turn."""

    def __init__(self, broker: Broker, topic: str, source: Input, schedule: Schedule, keys: Keys | None = None) -> None:
        self.topic, self.source, self.schedule, self._keys = topic, source, schedule, keys
        self.sent = self.delivered = self.failed = 0
        self._producer = Producer({**broker.for_librdkafka(), **SETTINGS})

    def follow(self, stream: TopicStream) -> None:
        """Go on with the same input under another schedule."""
        self.source, self.schedule, self._keys = stream.values, stream.schedule, stream.keys

    def send_some(self, position: int, most: int) -> bool:
        """Send records before `position` that were not sent yet, at most so many; returns whether there are more."""
        self.send_until(min(position, self.sent + most))
        return self.sent < position

    def send_until(self, position: int) -> None:
        """Send every record before `position` that was not sent yet."""
        while self.sent < position:
            stop = min(self.sent + POLL_EVERY, position)
            keys = self._keys(self.sent, stop) if self._keys else itertools.repeat(None)
            for p, (value, key) in enumerate(zip(self.source(self.sent, stop), keys, strict=False), self.sent):
                self._produce(value, key, p % self.schedule.partitions, self.schedule.due_ms(p))
            self.sent = stop
            self._producer.poll(0)
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
        """Wait at most `limit_s` seconds until the broker has answered for every record sent.

        Records without an answer count neither as delivered nor as failed.
        """
        self._producer.flush(limit_s)

    def _done(self, error: object, _message: object) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.failed += 1


Feed: TypeAlias = InputSender | BatchSender


def _feed(config: LoadConfig, stream: TopicStream) -> Feed:
    if config.batch_records is None:
        return InputSender(config.broker, stream.topic, stream.values, stream.schedule, stream.keys)
    spec = cast(NexmarkSpec, config.workload)  # experiments with batches of anything else are refused
    return BatchSender(config.broker, stream.topic, spec, stream.schedule, config.batch_records)


class Generator:
    """Feeds every topic of a workload on the schedule that its configuration has at the moment."""

    def __init__(self, config_path: Path, journal: Journal) -> None:
        self._path, self._journal = config_path, journal
        self._stamp, config = self._read()
        self._sources, self.schedule = sources(config.workload), config.schedule
        found = [source.under(self.schedule) for source in self._sources]
        self._feeds = [_feed(config, each) for each in found]
        self._following: Schedule | None = None  # once all that the present schedule made due is sent
        journal.record(LoadStarted(**asdict(self.schedule)))

    def _read(self) -> tuple[tuple[int, int], LoadConfig]:
        """The configuration, and which file it was; it is replaced, never written into."""
        with self._path.open(encoding="utf-8") as file:
            return _stamp(os.fstat(file.fileno())), LoadConfig.from_json(json.load(file))

    def send(self) -> bool:
        """Send what is due by now, or at most `MOST_AT_ONCE` records of each feed; returns whether more is due.

        Whoever asked for another schedule asked for it ahead: so often is it looked for that no feed outruns its end.
        """
        if self._following is None and _stamp(self._path.stat()) != self._stamp:
            self._stamp, config = self._read()
            self._following = config.schedule
        until_ns = time.time_ns() if self._following is None else self.schedule.end_ns
        if until_ns is not None and self._send_some(until_ns):
            return True
        if self._following is not None:
            self._follow(self._following)
        return False

    def _send_some(self, until_ns: int) -> bool:
        more = [feed.send_some(feed.schedule.due_count(until_ns), MOST_AT_ONCE) for feed in self._feeds]
        return any(more)

    def _follow(self, schedule: Schedule) -> None:
        for feed, source in zip(self._feeds, self._sources, strict=True):
            feed.follow(source.under(schedule))
        self.schedule, self._following = schedule, None
        self._journal.record(LoadRescheduled(**asdict(schedule)))

    def report(self) -> None:
        """Journal how many records of all feeds are due, sent, delivered and refused so far."""
        now_ns = time.time_ns()
        counts = (sum(getattr(feed, name) for feed in self._feeds) for name in ("sent", "delivered", "failed"))
        self._journal.record(RecordsSent(self.schedule.due_count(now_ns), *counts, at_ns=now_ns))

    def finish(self) -> None:
        """Wait for the broker's last answers, then journal the final counts; each feed waits at most 30 s."""
        for feed in self._feeds:
            feed.finish()
        self.report()


def _stamp(found: os.stat_result) -> tuple[int, int]:
    return found.st_ino, found.st_mtime_ns


def run(config_path: Path, journal: Journal) -> None:
    """Send on schedule until SIGTERM; the journal says every second what was due, sent, delivered and refused."""
    generator = Generator(config_path, journal)
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    next_line = time.monotonic()
    while not stopping:
        more = generator.send()
        if time.monotonic() >= next_line:
            next_line += 1.0
            generator.report()
        if not more:
            time.sleep(TICK_S)
    generator.finish()


def main() -> None:
    """Run as a service with the paths of configuration and journal from the command line."""
    config_path, journal_path = map(Path, sys.argv[1:])
    run(config_path, Journal(journal_path))


if __name__ == "__main__":
    main()
