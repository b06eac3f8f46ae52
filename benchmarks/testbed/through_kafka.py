"""What comparisons of protocols between two topics share: arguments, input, jobs, runs in turn, and their shares."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from benchmarks.arguments import at_least_one
from benchmarks.testbed.throughput import OF_ANY_STATE, job_of
from infra.broker import Broker
from infra.cluster import Handle
from infra.services import kafka
from reproductions.claims import Ratio, mean_ratio
from testbed.operators import Delivery
from testbed.queries import QUERIES
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from workloads.inputs import TopicStream, records
from workloads.schedule import Schedule
from workloads.sending.feeds import feed_of

EVENT_RATE, START_NS = 10_000.0, 1_700_000_000 * 10**9  # only date the events: windows of 10 s have 100,000
FIRST_COME = ["none", "coordinated", "uncoordinated", "communication-induced"]

RunT = TypeVar("RunT")  # what one run has shown
Runs: TypeAlias = dict[str, list[RunT]]  # by protocol
Figures: TypeAlias = Mapping[str, Callable[[RunT], float]]  # what is compared of runs, by name


class Comparison(Generic[RunT]):
    """Runs of each query with each number of records a message, each protocol in its turn.

    given      the arguments (`parser_of`)
    schedule   of the events, which are in the input topic before a run starts
    events     how many there are, in full messages
    """

    def __init__(self, given: argparse.Namespace, partitions: int) -> None:
        self.given, self.schedule = given, Schedule(START_NS, EVENT_RATE, partitions)
        self.events = self.schedule.in_full_batches(given.events, given.batch or 1)

    def in_turns(
        self,
        query: str,
        most: int,
        turns: int,
        run: Callable[[str, str], RunT],
        line: Callable[[str, Runs[RunT]], str],
    ) -> Runs[RunT]:
        """A query with each protocol in its turn, and a line for each run; returns all of them.

        `run` takes the name of a run and its protocol, `line` the protocol of the last run, and all so far.
        """
        runs: Runs[RunT] = {protocol: [] for protocol in self.given.protocols}
        for turn in range(turns):
            for protocol, own in runs.items():
                own.append(run(f"{query}-{most}-{protocol}-{turn}", protocol))
                print(line(protocol, runs), flush=True)
        return runs


def show_shares(runs: Runs[RunT], figures: Figures[RunT]) -> None:
    """A line for each figure of each protocol but the first; none for a single turn, which has no limits."""
    if all(len(own) > 1 for own in runs.values()):
        for each in shares(runs, figures):
            print(f"{each.what}: {each.ratio:.3f} ({each.low:.3f} to {each.high:.3f})", flush=True)


def shares(runs: Mapping[str, Sequence[RunT]], figures: Figures[RunT]) -> list[Ratio]:
    """Of the first protocol's figures those of the others: geometric means over turns. Each has at least two runs."""
    (first, base), *others = runs.items()
    return [
        mean_ratio(
            f"{protocol} / {first}, {name}", [(of(run), of(under)) for run, under in zip(own, base, strict=True)]
        )
        for protocol, own in others
        for name, of in figures.items()
    ]


def kafka_job(
    handle: Handle, workers: int, name: str, query: str, protocol: str, most: int, batch: int | None = None
) -> Job:
    """From the topic that all runs read to a topic of its own; `batch`: events, and most results, in a message."""
    broker = handle.kafka
    delivery = Delivery.PLAIN if protocol == "none" else Delivery.EXACTLY_ONCE
    job = job_of(name, query, protocol, workers, Path(handle.root), most, chaining=most > 1)
    return replace(
        job,
        input=JobInput(InputKind.KAFKA, None, broker=broker, batch_records=batch),
        output=OutputSpec(OutputKind.KAFKA, delivery, broker=broker, topic=f"output-{name}", batch_records=batch),
    )


def fill(broker: Broker, job: Job, schedule: Schedule, events: int) -> None:
    """Put all events into the input topic of a job, and say so."""
    print(f"filling the topic with {events:,} events", file=sys.stderr, flush=True)
    kafka.create_topics(broker, {job.input.topic: job.parallelism})
    stream = TopicStream(job.input.topic, records(job.workload, schedule), schedule)
    feed = feed_of(broker, job.workload, stream, job.input.batch_records)
    feed.send_until(events)
    feed.require(events)


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The arguments that all of these benchmarks have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    queries = [each.value for each in QUERIES]
    parser.add_argument("--queries", nargs="+", choices=queries, default=queries)
    parser.add_argument("--protocols", nargs="+", choices=OF_ANY_STATE, default=FIRST_COME)
    parser.add_argument("--records", nargs="+", type=at_least_one, default=[1, 1024], help="records per message")
    parser.add_argument("--batch", type=at_least_one, help="events, and most results, in one message: Arrow batches")
    parser.add_argument(
        "--events", type=at_least_one, default=36_000_000, help="of the stream, in the topic before a run starts"
    )
    return parser
