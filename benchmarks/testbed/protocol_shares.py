"""What each checkpointing protocol costs a slot between two topics, decided by many short runs in turn.

`.venv/bin/python -m benchmarks.testbed.protocol_shares [--queries q1 q12] [--protocols none ...] [--records 1 1024]
[--turns N] [--rounds N] [--events N] [--batch N] [--json]` starts a broker, fills the input topic, and lets one slot
with all partitions of a query read it from its beginning, one run after another, each protocol in its turn. The slot is
in this process, and the broker and its cost are not. Output is as in `kafka_throughput`: exactly once, but of protocol
`none` at once. Checkpoints are 5 s apart and go to a folder below the temporary one.

`kafka_throughput` tells what two slots bring from topic to topic on a machine; there runs of one kind differ by a
tenth, so that small shares would take dozens of runs of a minute. A run here takes some 25 s. Each is measured from one
checkpoint to another, from the third on: only then does as much come out as is read.

Prints for each run events read a second of CPU time of all threads, and by the clock, and how large the time of
checkpoints is beside that CPU time; then for each protocol the range of the latter, and the share of the first
protocol's rates, as the geometric mean over turns with its 95 % limits. The first run of a query does not count, since
it takes longer. A run that reads all of its input ends the program: it would have had nothing to do in the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple, TextIO, TypeAlias

from confluent_kafka.admin import AdminClient

from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from benchmarks.testbed.kafka_throughput import EVENT_RATE, START_NS, comparison_through_kafka, fill, kafka_job, shares
from benchmarks.testbed.slot import OneSlot
from experiments.errors import EnvironmentFailure
from infra.cluster import Handle
from infra.local import LocalDriver
from infra.services import kafka
from testbed.runtime.job import Job
from tests.integration.lone_broker import lone_broker
from workloads.schedule import Schedule

PARTITIONS = 2
FIRST_ROUND = 3  # results wait for two checkpoints, so that those of the first come out with the third
HEAD = "query protocol               records  events/CPU s     events/s  checkpoints  load"


class SlotRates(NamedTuple):
    """Of one run: events read for a second of CPU time and of the clock, the time of checkpoints beside the CPU
    time, and the load before it."""

    of_cpu: float
    of_clock: float
    checkpoints: float
    load: float


FIGURES: dict[str, Callable[[SlotRates], float]] = {
    "events/CPU s": lambda run: run.of_cpu,
    "events/s": lambda run: run.of_clock,
}
Runs: TypeAlias = dict[str, list[SlotRates]]  # by protocol


@contextmanager
def filled_broker(schedule: Schedule, events: int, batch: int | None) -> Iterator[Handle]:
    """A broker whose input topic has all events; it is gone afterwards, also if SIGTERM ends the program."""
    end_by_sigterm()
    with (
        tempfile.TemporaryDirectory(prefix="aftershock-shares-") as root,
        lone_broker(LocalDriver(), Path(root)) as handle,
    ):
        print(f"filling the topic with {events:,} events", file=sys.stderr, flush=True)
        fill(handle.kafka, kafka_job(handle, PARTITIONS, "fill", "q1", "none", 1, batch), schedule, events)
        yield handle


def measured(handle: Handle, job: Job, events: int, rounds: int) -> SlotRates:
    """Run a job on the input from its beginning, and delete what it wrote. Raises `EnvironmentFailure`."""
    kafka.create_topics(handle.kafka, {job.output.topic: PARTITIONS})
    load, slot = os.getloadavg()[0], OneSlot(job)
    try:
        spent = slot.run_rounds(FIRST_ROUND, rounds)
        left = events - slot.events_read()
    finally:
        slot.close()
        shutil.rmtree(job.store, ignore_errors=True)
        admin = AdminClient(handle.kafka.for_librdkafka())
        admin.delete_topics([job.output.topic])[job.output.topic].result()
    if left <= 0:
        raise EnvironmentFailure(f"{job.run_id} has read all {events:,} events", "use more --events, or fewer --rounds")
    rates = spent.events / spent.cpu_s, spent.events / spent.seconds
    return SlotRates(*rates, spent.checkpoint_s / spent.cpu_s, load)


@one_line_errors()
def main() -> None:
    """Measure each query with 1 and with more records a message, each protocol in its turn: lines, or JSON."""
    given = _arguments()
    shown = sys.stderr if given.json else sys.stdout
    schedule = Schedule(START_NS, EVENT_RATE, PARTITIONS)
    events = schedule.in_full_batches(given.events, given.batch or 1)
    found = dict[tuple[str, int], Runs]()
    try:
        with filled_broker(schedule, events, given.batch) as handle:
            print(HEAD, file=shown, flush=True)
            for query, most in product(given.queries, given.records):
                found[query, most] = {protocol: [] for protocol in given.protocols}
                _compare(handle, query, most, events, given, shown, found[query, most])
    finally:  # what has been measured is not lost with the run that failed
        if given.json:
            print(json.dumps(document(found, given)))


def _compare(
    handle: Handle, query: str, most: int, events: int, given: argparse.Namespace, shown: TextIO, runs: Runs
) -> None:
    """A query with each protocol in its turn, after a run that does not count; adds each run."""
    first = kafka_job(handle, PARTITIONS, f"{query}-{most}-first", query, given.protocols[0], most, given.batch)
    measured(handle, replace(first, slots=1), events, given.rounds)
    for turn in range(given.turns):
        for protocol, rates in runs.items():
            name = f"{query}-{most}-{protocol}-{turn}"
            job = kafka_job(handle, PARTITIONS, name, query, protocol, most, given.batch)
            rates.append(measured(handle, replace(job, slots=1), events, given.rounds))
            last = rates[-1]
            line = f"{query:5} {protocol:22} {most:7} {last.of_cpu:13,.0f} {last.of_clock:12,.0f}"
            line += f" {last.checkpoints:12.2%} {last.load:5.0f}"
            print(line, file=shown, flush=True)
    for protocol, rates in runs.items():
        parts = [each.checkpoints for each in rates]
        print(f"{protocol}, checkpoints: {min(parts):.2%} to {max(parts):.2%} of CPU time", file=shown)
    for each in shares(runs, FIGURES) if given.turns > 1 else ():
        print(f"{each.what}: {each.ratio:.3f} ({each.low:.3f} to {each.high:.3f})", file=shown, flush=True)


def document(found: dict[tuple[str, int], Runs], given: argparse.Namespace) -> dict[str, object]:
    """What `--json` prints: all runs by query and records a message."""
    settings = {"cores": os.cpu_count(), "turns": given.turns, "rounds": given.rounds, "batch_events": given.batch}
    runs = [
        {"query": query, "records_per_message": most, "protocol": protocol, "runs": [each._asdict() for each in rates]}
        for (query, most), by_protocol in found.items()
        for protocol, rates in by_protocol.items()
    ]
    return {"settings": settings, "measured": runs}


def _arguments() -> argparse.Namespace:
    parser = comparison_through_kafka(__doc__)
    parser.set_defaults(queries=["q1", "q12"], events=20_000_000)
    parser.add_argument("--turns", type=int, default=8, help="runs of each")
    parser.add_argument("--rounds", type=int, default=2, help="checkpoint intervals that are measured")
    return parser.parse_args()


if __name__ == "__main__":
    main()
