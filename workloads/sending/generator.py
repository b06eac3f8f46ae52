"""The open-loop generator: sends every record when it is due, independent of the broker and the query.

Record number p goes to partition p mod P at offset p div P and is due at start + p / rate; its Kafka timestamp
is that due time, so that an outage shows in the latency of every record that had to wait.
Run as a service: `python -m workloads.sending.generator CONFIG.json JOURNAL.jsonl`. Another schedule in CONFIG changes
the load: the generator first sends all records that were due under the schedule before, and continues with the next.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path

from journal.events.services import LoadRescheduled, LoadStarted, RecordsSent
from journal.writer import Journal
from workloads.inputs import sources
from workloads.schedule import Schedule
from workloads.sending.feeds import feed_of
from workloads.sending.load_config import LoadConfig

TICK_S = 0.02
MOST_AT_ONCE = 50_000  # records of a feed until schedule and signals are looked at: some tenths of a second


class Generator:
    """Feeds every topic of a workload on the schedule that its configuration has at the moment."""

    def __init__(self, config_path: Path, journal: Journal) -> None:
        self._path, self._journal = config_path, journal
        self._stamp, config = self._read()
        self._sources, self.schedule = sources(config.workload), config.schedule
        found = [source.under(self.schedule) for source in self._sources]
        self._feeds = [feed_of(config.broker, config.workload, each, config.batch_records) for each in found]
        self._following: Schedule | None = None  # once all that the present schedule made due is sent
        journal.record(LoadStarted(**asdict(self.schedule)))

    def _read(self) -> tuple[tuple[int, int], LoadConfig]:
        """The configuration, and which file it was; it is replaced, never written into."""
        with self._path.open(encoding="utf-8") as file:
            return _stamp(os.fstat(file.fileno())), LoadConfig.from_json(json.load(file))

    def send(self) -> bool:
        """Send what is due by now, or at most `MOST_AT_ONCE` records of each feed; returns whether more is due.

        Another schedule is requested in advance. This looks for it often enough that no feed passes its end.
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
