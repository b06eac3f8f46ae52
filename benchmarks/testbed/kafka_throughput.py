"""Throughput of NexMark's queries on the testbed from topic to topic: what has come out, in records that were read.

`.venv/bin/python -m benchmarks.testbed.kafka_throughput [--queries q1 ...] [--protocols none ...] [--records 1 1024]
[--workers 2] [--window S] [--repeats N] [--events N] [--batch N]` makes a local cluster with its broker, fills
the input topic, and runs one driver program after another on it, each protocol in its turn. All input is there before a
program starts, so that no generator limits it. Output is exactly once; that of protocol `none`, for which nothing is
ever safe, goes out at once.

Counted is what readers of committed messages can see in the output topic. From how many results are out follows how far
the query must have read (`nexmark_results`). A figure counts the records that the query reads: bids, or auctions and
persons, and never the positions of the stream in between. With one record a message every operator is a partition of
its own, as in `checkmate`; with more, maps and filters are chained into the sources.

Prints for each run records/s of wall clock and of the slots' CPU time, and their shares of the first protocol's; then
the medians, and the shares with their 95 % limits, by how the shares of single turns differ. Each sink commits by
itself, so the window of each partition of the output begins and ends with a commit there. Wall clock means little where
there is other work: the load before a run is printed, too.

*Read* is what sources read a second in the same window. If it is far from what comes out, the run is not steady: a sink
publishes what has gathered, or sources wait for a sink. Then only a longer window tells what can be sustained. *Idle*
is the share of the time in which the slots' own threads wait, for Kafka as a rule: its clients have threads of their
own, and the broker runs on the same cores.

A run takes the window and about 25 s, so everything takes an hour and a half. A run that reads nearly all of the input
in its window is refused: the end of the input would limit it. If a run fails or is refused, the program ends.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import median
from typing import TypeAlias, cast

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from numpy.typing import NDArray

from benchmarks.arguments import above_zero, at_least_one
from benchmarks.machine_load import load_of_others
from benchmarks.one_line_errors import one_line_errors
from benchmarks.testbed.nexmark_results import ExpectedResults
from benchmarks.testbed.through_kafka import Comparison, Figures, Runs, fill, kafka_job, parser_of, show_shares
from benchmarks.testbed.throughput import BenchmarkCluster, cluster_of, entries_of, times
from experiments.errors import EnvironmentFailure
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from infra.broker import Broker
from infra.services import kafka
from journal.reader import raw_entries
from testbed.queries import from_batch
from testbed.runtime.job import Job
from testbed.source_positions import events_read

MOST_READ = 0.98  # of all expected results: an input that is read further may have ended within the window
LOOK_S, WARM_S, ANSWER_S = 0.2, 12.0, 10.0  # a sink's first transaction comes late: it waits for the coordinator
HEAD = (
    "query protocol               records  records/s  share       read  records/CPU s  share  idle    results  seconds"
    "  load"
)


@dataclass(frozen=True)
class Throughput:
    """Of one run: records/s of wall clock, that come out and that sources read, and of the slots' CPU time; in which
    share of the time the slots' own threads wait; the seconds measured, the results at the end, and the load before.
    """

    records_per_second: float
    read_per_second: float
    records_per_cpu_second: float
    idle: float
    seconds: float
    results: int
    load: float


@dataclass(frozen=True)
class Seen:
    """How many results were out in a partition at a moment [ns]."""

    at_ns: int
    results: int


FIGURES: Figures[Throughput] = {
    "records/s": lambda run: run.records_per_second,
    "records/CPU s": lambda run: run.records_per_cpu_second,
}
Looks: TypeAlias = list[tuple[Seen, ...]]


class OutputCount:
    """What readers of committed messages can see of a topic, without reading it while it is written: its ends.

    The broker marks the end of each transaction in the topic. If each result is a message, those marks count as
    results here, one for each transaction.
    """

    def __init__(self, broker: Broker, topic: str, partitions: int) -> None:
        settings = {"group.id": "throughput", "isolation.level": "read_committed", "enable.partition.eof": True}
        self._consumer = Consumer({**broker.for_librdkafka(), **settings})
        self._places = [TopicPartition(topic, number) for number in range(partitions)]

    def look(self) -> tuple[Seen, ...]:
        """How many results are out now, by partition."""
        ends = [self._consumer.get_watermark_offsets(place, ANSWER_S) for place in self._places]
        at_ns = time.time_ns()
        return tuple(Seen(at_ns, end) for _, end in ends)

    def in_results(self, looks: Looks) -> Looks:
        """The same moments with the number of results, where these are Arrow batches: reads the whole topic."""
        before = [self._results_before(place) for place in self._places]
        return [
            tuple(Seen(each.at_ns, int(found[each.results])) for each, found in zip(look, before, strict=True))
            for look in looks
        ]

    def _results_before(self, place: TopicPartition) -> NDArray[np.int64]:
        """How many results lie before each offset of a partition, (offsets + 1,)."""
        _, end = self._consumer.get_watermark_offsets(place, ANSWER_S)
        results = np.zeros(end + 1, np.int64)
        self._consumer.assign([TopicPartition(place.topic, place.partition, OFFSET_BEGINNING)])
        while (message := self._consumer.poll(ANSWER_S)) is not None and message.error() is None:
            offset, value = cast(tuple[int, bytes], (message.offset(), message.value()))  # without an error it has both
            results[offset + 1] = from_batch(value).num_rows
        error = None if message is None else message.error()
        if error is None or error.code() != KafkaError._PARTITION_EOF:
            raise EnvironmentFailure(f"{place.topic} could not be read to its end", "look at the broker")
        return np.cumsum(results)

    def close(self) -> None:
        """Ask no more."""
        self._consumer.close()


def window_of(seen: Sequence[Seen], from_ns: int) -> tuple[Seen, Seen]:
    """The first and the last moment at which a partition's commit was over: results had come, and no more came for a
    while.

    If results come all the time, any moment is as good. Raises `EnvironmentFailure` if there are no two moments.
    """
    steps = [number for number in range(1, len(seen)) if seen[number].results > seen[number - 1].results]
    steps = [number for number in steps if seen[number].at_ns >= from_ns]
    over = [number for number in steps if number + 1 == len(seen) or number + 1 not in steps]
    found = over if len(over) > 1 else steps
    if len(found) < 2:
        raise EnvironmentFailure("no window to measure in: results came fewer than twice", "use a longer --window")
    return seen[found[0]], seen[found[-1]]


def records_in_window(looks: Looks, from_ns: int, expected: ExpectedResults) -> tuple[float, int, int]:
    """Records/s by the results of all partitions, each in its own window, and when the windows begin and end [ns].

    How many records a result stands for is a mean over this time. Raises `EnvironmentFailure` if there is no window, or
    if the input was used up.
    """
    last = sum(each.results for each in looks[-1])
    if last >= MOST_READ * len(expected.complete):
        cause = f"{last:,} of {len(expected.complete):,} results were out at the end: the input was used up"
        raise EnvironmentFailure(cause, "use more --events, or a shorter --window")
    windows = [window_of(seen, from_ns) for seen in zip(*looks, strict=True)]
    results_per_second = sum((end.results - begin.results) / (end.at_ns - begin.at_ns) for begin, end in windows) * 1e9
    begin_ns, end_ns = min(begin.at_ns for begin, _ in windows), max(end.at_ns for _, end in windows)
    out = {look[0].at_ns: sum(each.results for each in look) for look in looks}
    records = expected.records_read(out[end_ns]) - expected.records_read(out[begin_ns])
    return results_per_second * records / (out[end_ns] - out[begin_ns]), begin_ns, end_ns


def measured(cluster: BenchmarkCluster, job: Job, expected: ExpectedResults, window_s: float) -> Throughput:
    """Run a job on the input from its beginning, for a window that begins when it is warm."""
    kafka.create_topics(cluster.handle.kafka, {job.output.topic: job.parallelism})
    output = OutputCount(cluster.handle.kafka, job.output.topic, job.parallelism)
    load = load_of_others()
    try:
        journal, looks = _watched(cluster, job, output, window_s)
        if job.output.batch_records is not None:
            looks = output.in_results(looks)
    finally:
        output.close()
    warm_ns = times(journal, "ready")[0] + round(WARM_S * 1e9)
    rate, begin_ns, end_ns = records_in_window(looks, warm_ns, expected)
    events_per_second, cpu, idle = read_cpu_and_idle(journal, begin_ns, end_ns)
    read, results = expected.records_in(events_per_second), sum(each.results for each in looks[-1])
    return Throughput(rate, read, rate / cpu, idle / job.slots, (end_ns - begin_ns) / 1e9, results, load)


def _watched(cluster: BenchmarkCluster, job: Job, output: OutputCount, window_s: float) -> tuple[Path, Looks]:
    """The journal of a run, and what was out again and again from its start on."""
    journal, looks = cluster.start(job), Looks()
    try:
        end_s = time.monotonic() + WARM_S + window_s
        while time.monotonic() < end_s and not times(journal, "failed"):
            looks.append(output.look())
            time.sleep(LOOK_S)
        # Before it is told to stop: that ends Spark, which the program may see first and tell as a failure.
        failures = [entry for entry in raw_entries(journal) if entry["event"] in ("failed", "worker-lost")]
    finally:
        cluster.stop(job)
    if failures:
        raise EnvironmentFailure(f"{job.run_id}: {failures[0]}: {cluster.told()}", "mend that and try again")
    return journal, looks


def read_cpu_and_idle(journal: Path, from_ns: int, to_ns: int) -> tuple[float, float, float]:
    """Events that sources read, CPU seconds of all slots, and seconds in which they wait, for a second between these
    moments, by the reports in between.

    Raises `EnvironmentFailure` if there are not two reports.
    """
    found = entries_of(journal, "progress")
    found = [entry for entry in found if from_ns <= entry["at_ns"] <= to_ns]
    if len(found) < 2:
        raise EnvironmentFailure(f"fewer than two reports of CPU time in {journal}", "use a longer --window")
    first, last = found[0], found[-1]
    seconds = (last["at_ns"] - first["at_ns"]) / 1e9
    events = events_read(last["positions"]) - events_read(first["positions"])
    cpu_s, idle_s = (last[each] - first[each] for each in ("cpu_s", "idle_s"))
    return events / seconds, cpu_s / seconds, idle_s / seconds


@one_line_errors()
def main() -> None:
    """Measure each query with 1 and with more records a message, each protocol in its turn."""
    given = _arguments()
    comparison = Comparison[Throughput](given, max(2, given.workers))
    with cluster_of(given.workers) as cluster:
        first = kafka_job(cluster.handle, given.workers, "fill", "q1", "none", 1, given.batch)
        fill(cluster.handle.kafka, first, comparison.schedule, comparison.events)
        print(HEAD, flush=True)
        for query in given.queries:
            expected = ExpectedResults(NexmarkSpec(query=NexmarkQuery(query)), comparison.schedule, comparison.events)
            for most in given.records:
                _compare(comparison, cluster, query, most, expected)


def _compare(
    comparison: Comparison[Throughput], cluster: BenchmarkCluster, query: str, most: int, expected: ExpectedResults
) -> None:
    """A query with each protocol in its turn, and the medians of several turns."""
    given, jobs = comparison.given, dict[str, Job]()

    def run(name: str, protocol: str) -> Throughput:
        jobs[protocol] = kafka_job(cluster.handle, given.workers, name, query, protocol, most, given.batch)
        return measured(cluster, jobs[protocol], expected, given.window)

    def beside_first(protocol: str, runs: Runs[Throughput]) -> str:
        own = runs[protocol]
        return line(jobs[protocol], own[-1], runs[given.protocols[0]][len(own) - 1])

    runs = comparison.in_turns(query, most, given.repeats, run, beside_first)
    if given.repeats > 1:
        print(f"medians of {given.repeats}:", flush=True)
        medians = {protocol: middle(own) for protocol, own in runs.items()}
        for protocol, found in medians.items():
            print(line(jobs[protocol], found, medians[given.protocols[0]]), flush=True)
        show_shares(runs, FIGURES)


def middle(runs: Sequence[Throughput]) -> Throughput:
    """The median of each figure."""
    return Throughput(*(median(figures) for figures in zip(*map(astuple, runs), strict=True)))


def line(job: Job, found: Throughput, base: Throughput) -> str:
    """A run, or the medians of several, beside the first protocol's."""
    share, cpu_share = (
        found.records_per_second / base.records_per_second,
        found.records_per_cpu_second / base.records_per_cpu_second,
    )
    wall, cpu = (
        f"{found.records_per_second:9,.0f} {share:6.0%} {found.read_per_second:10,.0f}",
        f"{found.records_per_cpu_second:13,.0f} {cpu_share:6.0%} {found.idle:5.0%}",
    )
    query = cast(NexmarkSpec, job.workload).query  # `kafka_job` makes no other jobs
    name = f"{query.value:5} {job.protocol:22} {job.limits.records_per_message:7}"
    return f"{name} {wall} {cpu} {found.results:10,.0f} {found.seconds:8.1f} {found.load:5.0f}"


def _arguments() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--repeats", type=at_least_one, default=3, help="runs of each")
    parser.add_argument("--workers", type=at_least_one, default=2)
    parser.add_argument(
        "--window", type=above_zero, default=30.0, help="seconds that are measured, after 12 s to get warm"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
