"""How many records a second the load generator can make and send, with a core to itself.

`.venv/bin/python -m benchmarks.testbed.generator [--events N] [--batch N] [--repeats N] [--rate N]`: NexMark's events
for four partitions go to the broker that librdkafka has for tests, in the same process, all of them due already. Prints
CPU time of the generator's thread [µs for an event], of which making them, and the events/s that this allows; one event
a message as JSON, then `--batch` events a message as Arrow. With `--rate` so many become due each second, and are sent
as a run sends them, `TICK_S` after one another, but without waiting. What librdkafka's own threads do, and a broker, is
not in it: they want another core. That broker knows no idempotent producers, which the generator's is otherwise.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from statistics import median
from typing import NamedTuple
from unittest.mock import patch

from benchmarks.arguments import above_zero, at_least_one
from benchmarks.one_line_errors import one_line_errors
from benchmarks.testbed.in_process_broker import InProcessBroker
from experiments.errors import BadInput
from experiments.workloads.catalogue import NexmarkSpec
from infra.broker import Broker
from workloads.inputs import TopicStream, records
from workloads.nexmark.batches import Batches
from workloads.schedule import Schedule
from workloads.sending import producing
from workloads.sending.feeds import feed_of
from workloads.sending.generator import TICK_S
from workloads.sending.input_sender import AHEAD_S, POLL_EVERY

SPEC, SCHEDULE = NexmarkSpec(), Schedule(1_700_000_000 * 10**9, 10_000.0, partitions=4)
NOT_IDEMPOTENT = producing.SETTINGS | {"enable.idempotence": False}


class Costs(NamedTuple):
    """CPU time of the generator's thread for an event [µs]: of all, and of making it."""

    total_us: float
    making_us: float


@one_line_errors()
def main() -> None:
    """Make and send, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=at_least_one, default=600_000, help="events of each measurement (600,000)")
    parser.add_argument("--batch", type=at_least_one, default=1024, help="events in a message of Arrow (1,024)")
    parser.add_argument("--repeats", type=at_least_one, default=3, help="the median of so many is printed (3)")
    parser.add_argument("--rate", type=above_zero, help="events that become due in a second (default: all are due)")
    given = parser.parse_args()
    broker = InProcessBroker()
    print("events a message  CPU us an event  making  events/s", flush=True)
    with patch.object(producing, "SETTINGS", NOT_IDEMPOTENT):
        for batch in (None, given.batch):
            costs = [_measured(broker.reach, given.events, batch, given.rate) for _ in range(given.repeats)]
            total_us, making_us = (median(each) for each in zip(*costs, strict=True))
            print(f"{batch or 1:16,}  {total_us:15.2f}  {making_us:6.2f}  {1e6 / total_us:8,.0f}", flush=True)


def _measured(broker: Broker, events: int, batch: int | None, rate: float | None) -> Costs:
    schedule = replace(SCHEDULE, rate=rate or SCHEDULE.rate)
    feed = feed_of(broker, SPEC, TopicStream("events", records(SPEC, schedule), schedule), batch)
    at_once = max(1, round(rate * TICK_S)) if rate else events
    begun_s = time.thread_time()
    for position in range(at_once, events + 1, at_once):
        feed.send_until(position)
    sent_s = time.thread_time()
    if not feed.sent:
        message, tick = batch * SCHEDULE.partitions if batch else 1, at_once if rate else 1
        raise BadInput("--events", events, f"at least {-(-message // tick) * tick:,}, or none is sent")
    feed.finish()
    made_s = time.thread_time()
    _make(schedule, feed.sent, batch, at_once)
    return Costs((sent_s - begun_s) / feed.sent * 1e6, (time.thread_time() - made_s) / feed.sent * 1e6)


def _make(schedule: Schedule, events: int, batch: int | None, at_once: int) -> None:
    """Make the same events, as many at a time as for sending, and send none."""
    if batch is None:
        make, length = records(SPEC, schedule), min(POLL_EVERY, max(at_once, int(schedule.rate * AHEAD_S)))
        for start in range(0, events, length):
            make(start, min(start + length, events))
    else:
        batches = Batches(SPEC, schedule, batch)
        for number in range(events // batches.length):
            batches.messages(number)


if __name__ == "__main__":
    main()
