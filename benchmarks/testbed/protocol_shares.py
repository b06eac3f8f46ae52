"""What each checkpointing protocol costs a slot between two topics, decided by many short runs in turn.

`.venv/bin/python -m benchmarks.testbed.protocol_shares [--queries q1 q12] [--protocols none ...] [--records 1 1024]
[--turns N] [--rounds N] [--events N] [--batch N]` starts a broker, fills the input topic, and lets one slot
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
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient

from benchmarks.arguments import at_least_one
from benchmarks.machine_load import load_of_others
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from benchmarks.testbed.slot import OneSlot
from benchmarks.testbed.through_kafka import Comparison, Figures, Runs, fill, kafka_job, parser_of, show_shares
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


FIGURES: Figures[SlotRates] = {
    "events/CPU s": lambda run: run.of_cpu,
    "events/s": lambda run: run.of_clock,
}


@contextmanager
def filled_broker(schedule: Schedule, events: int, batch: int | None) -> Iterator[Handle]:
    """A broker whose input topic has all events; it is gone afterwards, also if SIGTERM ends the program."""
    end_by_sigterm()
    with (
        tempfile.TemporaryDirectory(prefix="aftershock-shares-") as root,
        lone_broker(LocalDriver(), Path(root)) as handle,
    ):
        fill(handle.kafka, kafka_job(handle, PARTITIONS, "fill", "q1", "none", 1, batch), schedule, events)
        yield handle


def measured(handle: Handle, job: Job, events: int, rounds: int) -> SlotRates:
    """Run a job on the input from its beginning, and delete what it wrote. Raises `EnvironmentFailure`."""
    kafka.create_topics(handle.kafka, {job.output.topic: PARTITIONS})
    load, slot = load_of_others(), OneSlot(job)
    try:
        spent = slot.run_rounds(FIRST_ROUND, rounds)
        left = events - slot.events_read()
    finally:
        slot.close()
        shutil.rmtree(job.store, ignore_errors=True)
        admin = AdminClient({**handle.kafka.for_librdkafka()})
        admin.delete_topics([job.output.topic])[job.output.topic].result()
    if left <= 0:
        raise EnvironmentFailure(f"{job.run_id} has read all {events:,} events", "use more --events, or fewer --rounds")
    rates = spent.events / spent.cpu_s, spent.events / spent.seconds
    return SlotRates(*rates, spent.checkpoint_s / spent.cpu_s, load)


@one_line_errors()
def main() -> None:
    """Measure each query with 1 and with more records a message, each protocol in its turn."""
    given = _arguments()
    comparison = Comparison[SlotRates](given, PARTITIONS)
    with filled_broker(comparison.schedule, comparison.events, given.batch) as handle:
        print(HEAD, flush=True)
        for query, most in product(given.queries, given.records):
            _compare(comparison, handle, query, most)


def _compare(comparison: Comparison[SlotRates], handle: Handle, query: str, most: int) -> None:
    """A query with each protocol in its turn, after a run that does not count."""
    given = comparison.given

    def run(name: str, protocol: str) -> SlotRates:
        job = kafka_job(handle, PARTITIONS, name, query, protocol, most, given.batch)
        return measured(handle, replace(job, slots=1), comparison.events, given.rounds)

    def line(protocol: str, runs: Runs[SlotRates]) -> str:
        last = runs[protocol][-1]
        rates = f"{query:5} {protocol:22} {most:7} {last.of_cpu:13,.0f} {last.of_clock:12,.0f}"
        return f"{rates} {last.checkpoints:12.2%} {last.load:5.0f}"

    run(f"{query}-{most}-first", given.protocols[0])
    runs = comparison.in_turns(query, most, given.turns, run, line)
    for protocol, own in runs.items():
        parts = [each.checkpoints for each in own]
        print(f"{protocol}, checkpoints: {min(parts):.2%} to {max(parts):.2%} of CPU time", flush=True)
    show_shares(runs, FIGURES)


def _arguments() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.set_defaults(queries=["q1", "q12"], events=20_000_000)
    parser.add_argument("--turns", type=at_least_one, default=8, help="runs of each")
    parser.add_argument("--rounds", type=at_least_one, default=2, help="checkpoint intervals that are measured")
    return parser.parse_args()


if __name__ == "__main__":
    main()
