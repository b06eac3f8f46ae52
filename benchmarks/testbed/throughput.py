"""Throughput of queries on the testbed by protocol: Spark tasks as slots, and a saturating source.

`.venv/bin/python -m benchmarks.testbed.throughput [--queries q1 ...] [--protocols none ...] [--workers 1 2 4 8]
[--records 1024] [--intervals S ...] [--window S] [--repeats N] [--no-chaining]` makes a local cluster for each number
of workers, and runs one driver program after another on it, with protocols and checkpoint intervals in alternating
runs. Events are made inside the sources and results are forgotten, so that the figure is the runtime's own; the
generator's cost is in it. Prints the channels between partitions, events per second of wall clock and of CPU time of
the slots over the window, the latter also as time for one event, each as a share of that of the first setting: of each
run, and the medians of several. Wall clock means little where there is other work: the load before a run is printed,
too.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.arguments import above_zero, at_least_one
from benchmarks.log_end import end_of
from benchmarks.machine_load import load_of_others
from benchmarks.one_line_errors import one_line_errors
from benchmarks.provisioned import provisioned
from benchmarks.sigterm import end_by_sigterm
from experiments.errors import EnvironmentFailure
from experiments.spec import ClusterSpec
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec, ReachabilitySpec
from experiments.workloads.cec_prices import CecPricesSpec
from experiments.workloads.hashtags import HashtagsSpec, HashtagTopology
from infra.cluster import Driver, Handle
from journal.reader import raw_entries
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.queries import QUERIES, TestbedWorkload
from testbed.runtime.connectors.sources import Generated
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from testbed.source_positions import events_read
from tests.integration.spark_jobs.submitting import PROGRAM, submit

WARM_S, START_LIMIT_S, POLL_S = 5.0, 600.0, 0.5
EVENT_RATE = 100_000.0  # only dates the events: they are all overdue
WORKLOADS: dict[str, TestbedWorkload] = {each.value: NexmarkSpec(query=NexmarkQuery(each.value)) for each in QUERIES}
WORKLOADS |= {  # those of figure 5 of `cec`
    "cec-fast": CecPricesSpec(items=2, window_records=1),
    "cec-slow": CecPricesSpec(items=2, window_records=1000),
    "two-windows": HashtagsSpec(topology=HashtagTopology.TWO_WINDOWS),  # that of figures 17 to 20 of `incremental`
}
CYCLE = "reachability"
CYCLIC: dict[str, TestbedWorkload] = {CYCLE: ReachabilitySpec(nodes=57_600, steady=True)}
OF_ANY_STATE = [name for name, each in PROTOCOLS.items() if not each.keeps_log]
HEAD = "workers query       protocol             interval channels   events/s  share  events/CPU s  share us/event load"


@dataclass(frozen=True)
class BenchmarkCluster:
    """A local cluster with this root, made for one benchmark."""

    driver: Driver
    handle: Handle
    root: Path

    def start(self, job: Job) -> Path:
        """Start a driver program; returns its journal once all slots are at work."""
        folder = Path(job.store).parent
        folder.mkdir()  # another run's journal must not be taken for this one's
        journal = submit(self.driver, self.handle, job, folder)
        deadline_s = time.monotonic() + START_LIMIT_S
        while not times(journal, "ready"):
            is_over = PROGRAM not in self.driver.running(self.handle, "gateway")
            if is_over or time.monotonic() > deadline_s:
                why = "has ended before it had begun" if is_over else f"has not begun after {START_LIMIT_S:g} s"
                raise EnvironmentFailure(f"{job.run_id} {why}: {self.told()}", "mend that and try again")
            time.sleep(POLL_S)
        return journal

    def told(self) -> str:
        """The end of what the driver program wrote to its log."""
        return end_of(self.handle.directory("gateway") / "logs" / f"{PROGRAM}.log")

    def stop(self, job: Job) -> None:
        """End the driver program, and delete what it stored."""
        self.driver.stop(self.handle, "gateway", PROGRAM, 30.0)
        shutil.rmtree(job.store, ignore_errors=True)


class Figures(NamedTuple):
    """Of one window: events per second of wall clock and of CPU time, and the load before the run."""

    wall: float
    cpu: float
    load: float


@contextmanager
def cluster_of(workers: int) -> Iterator[BenchmarkCluster]:
    """A local cluster that is gone afterwards, with all that was written, also if SIGTERM ends the program."""
    end_by_sigterm()
    spec = ClusterSpec(workers=workers, worker_memory_mb=512)
    with provisioned(spec, "dataflow-benchmark") as (driver, handle):
        yield BenchmarkCluster(driver, handle, Path(handle.root))


def job_of(
    name: str, query: str, protocol: str, workers: int, root: Path, records: int = 1024, *, chaining: bool = True
) -> Job:
    """A slot for each worker, a partition of every operator for each slot; but two for one worker."""
    return Job(
        run_id=name,
        workload=(WORKLOADS | CYCLIC)[query],
        protocol=protocol,
        slots=workers,
        parallelism=max(2, workers),
        input=JobInput(InputKind.GENERATED, None, 0, EVENT_RATE),
        output=OutputSpec(OutputKind.NOWHERE, Delivery.PLAIN),
        store=str(root / name / "store"),
        chaining=chaining,
        checkpoint_interval_s=5.0,
        limits=PartitionLimits(records_per_message=records),
    )


def measured(cluster: BenchmarkCluster, job: Job, window_s: float) -> Figures:
    """Run a job for a window that begins when it is warm; ends the program if that was no window to measure in."""
    load = load_of_others()
    journal = cluster.start(job)
    time.sleep(WARM_S + window_s)
    losses_ns = times(journal, "worker-lost")
    cluster.stop(job)
    begin_ns = times(journal, "ready")[0] + WARM_S * 1e9
    end_ns = min([begin_ns + window_s * 1e9, *losses_ns])  # what a report sums up is of the slots that are left
    return figures_of(job, journal, (begin_ns, end_ns), load)


def figures_of(job: Job, journal: Path, window: tuple[float, float], load: float) -> Figures:
    """What a run reported in a window [ns], with the load before it; ends the program if that was no window to measure
    in."""
    entries = entries_of(journal, "progress")
    return _figures(job, [entry for entry in entries if window[0] <= entry["at_ns"] < window[1]], load)


def entries_of(journal: Path, event: str) -> list[dict[str, Any]]:
    """The entries of an event, in order."""
    return [entry for entry in raw_entries(journal) if entry["event"] == event]


def times(journal: Path, event: str) -> list[int]:
    """The moments of an event [ns]."""
    return [entry["at_ns"] for entry in entries_of(journal, event)]


@one_line_errors()
def main() -> None:
    """Print a line for each query, protocol, interval and number of workers, all measured in alternating runs."""
    given = _arguments()
    print(HEAD, flush=True)
    for workers in given.workers:
        with cluster_of(workers) as cluster:
            for query in given.queries:
                _compare(cluster, workers, query, given)


def _compare(cluster: BenchmarkCluster, workers: int, query: str, given: argparse.Namespace) -> None:
    """A query with each protocol and checkpoint interval, in alternating runs."""
    found: dict[tuple[str, float], list[Figures]] = {each: [] for each in product(given.protocols, given.intervals)}
    first = next(iter(found))
    jobs: dict[tuple[str, float], Job] = {}
    for repeat in range(given.repeats):
        for setting, figures in found.items():
            protocol, interval_s = setting
            name = f"{query}-{protocol}-{interval_s:g}-{repeat}"
            job = job_of(name, query, protocol, workers, cluster.root, given.records, chaining=given.chaining)
            jobs[setting] = replace(job, checkpoint_interval_s=interval_s)
            figures.append(measured(cluster, jobs[setting], given.window))
            print(_line(query, jobs[setting], figures[-1], found[first][repeat]), flush=True)
    if given.repeats > 1:
        print(f"medians of {given.repeats}:")
        medians = {setting: Figures(*map(median, zip(*figures, strict=True))) for setting, figures in found.items()}
        for setting, middle in medians.items():
            print(_line(query, jobs[setting], middle, medians[first]), flush=True)


def comparison(description: str | None, queries: list[str], repeats: int) -> argparse.ArgumentParser:
    """The arguments of the benchmarks that compare protocols, with these defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--queries", nargs="+", choices=list(WORKLOADS), default=queries)
    parser.add_argument("--protocols", nargs="+", choices=list(PROTOCOLS), default=OF_ANY_STATE)
    parser.add_argument("--records", type=at_least_one, default=1024, help="records per message")
    parser.add_argument("--repeats", type=at_least_one, default=repeats, help="runs of each")
    parser.add_argument(
        "--no-chaining", dest="chaining", action="store_false", help="every map and filter is a partition by itself"
    )
    return parser


def _arguments() -> argparse.Namespace:
    parser = comparison(__doc__, ["q1", "q12"], repeats=1)
    parser.add_argument("--workers", nargs="+", type=at_least_one, default=[2])
    parser.add_argument("--intervals", nargs="+", type=above_zero, default=[5.0], help="seconds between checkpoints")
    parser.add_argument("--window", type=above_zero, default=20.0, help="seconds that are measured")
    return parser.parse_args()


def _line(query: str, job: Job, found: Figures, base: Figures) -> str:
    channels = len(job.layout().channels)
    return (
        f"{job.slots:7} {query:11} {job.protocol:21} {job.checkpoint_interval_s:7g} {channels:8} {found.wall:10,.0f}"
        f" {found.wall / base.wall:6.0%} {found.cpu:13,.0f} {found.cpu / base.cpu:6.0%} {1e6 / found.cpu:8.3f}"
        f" {found.load:4.0f}"
    )


def _figures(job: Job, progress: list[dict[str, Any]], load: float) -> Figures:
    if len(progress) < 2:
        sys.exit(f"{job.run_id}: no window to measure in: a slot was lost, or has hardly reported since it is warm")
    first, last = progress[0], progress[-1]
    blocks = events_read(last["positions"]) - events_read(first["positions"])
    events = blocks * Generated.block_events(job.input.rate)
    seconds, cpu_s = (last["at_ns"] - first["at_ns"]) / 1e9, last["cpu_s"] - first["cpu_s"]
    return Figures(events / seconds, events / cpu_s, load)


if __name__ == "__main__":
    main()
