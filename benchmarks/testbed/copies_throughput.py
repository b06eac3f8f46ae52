"""What active copies cost in throughput, beside what they cost in CPU time.

`.venv/bin/python -m benchmarks.testbed.copies_throughput [--query q12] [--shares 0.5 1] [--repeats N] [--window S]`
makes one local cluster with two slots and two that stand by. A saturating source runs on it, in alternating runs
without copies and with copies of a share of the partitions. If the slots keep all cores busy and copies cost CPU time
only, throughput falls to the share of CPU time that they leave to primaries. Prints that share beside the throughput by
that without copies: of each run, and the medians of several. The share counts processing, and checkpoints of copies. It
leaves out checkpoints of primaries, and what it costs to send to copies.

Also prints where the cores' time for an event goes: into the processes with primaries, which send to the copies, too,
and into all the rest. The rest is the processes with copies, Spark, and what is idle. The load is that before a run.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.arguments import above_zero, at_least_one, from_0_to_1
from benchmarks.machine_load import load_of_others
from benchmarks.one_line_errors import one_line_errors
from benchmarks.testbed.throughput import (
    POLL_S,
    START_LIMIT_S,
    WARM_S,
    WORKLOADS,
    BenchmarkCluster,
    cluster_of,
    figures_of,
    job_of,
    times,
)
from experiments.waiting import poll_until
from journal.events.testbed import TESTBED, Costs, EpochReady
from journal.reader import events
from spark_jobs.tables.dataflow.copies import cpu_shares
from testbed.runtime.job import Job

SLOTS, NS = 2, 10**9
CORES = os.cpu_count() or 1
HEAD = "copies   events/s  by none  CPU time left  us/event: slots with primaries, the rest  load"


class Cost(NamedTuple):
    """Of one window: events per second, and the share of CPU time that is not the copies'.

    primaries_us, rest_us   the cores' time per event [us]: of the processes with primaries, and what remains
    load                    the load before the run
    """

    events_per_s: float
    left: float
    primaries_us: float
    rest_us: float
    load: float


@one_line_errors()
def main() -> None:
    """Measure every share of copies, in alternating runs."""
    given = _arguments()
    found: dict[float, list[Cost]] = {share: [] for share in (0.0, *given.shares)}
    print(HEAD, flush=True)
    with cluster_of(2 * SLOTS) as cluster:
        for turn in range(given.repeats):
            for share, costs in found.items():
                costs.append(_measured(cluster, _job(given.query, share, turn, cluster), share, given.window))
                print(_line(share, costs[-1], found[0.0][turn]), flush=True)
    medians = {share: Cost(*map(median, zip(*costs, strict=True))) for share, costs in found.items()}
    print(f"medians of {given.repeats}:")
    for share, cost in medians.items():
        print(_line(share, cost, medians[0.0]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--query", choices=list(WORKLOADS), default="q12")
    parser.add_argument("--shares", nargs="+", type=from_0_to_1, default=[0.5, 1.0], help="of partitions with a copy")
    parser.add_argument("--repeats", type=at_least_one, default=3, help="runs of each")
    parser.add_argument("--window", type=above_zero, default=20.0, help="seconds that are measured")
    return parser.parse_args()


def _job(query: str, share: float, turn: int, cluster: BenchmarkCluster) -> Job:
    job = job_of(f"{query}-{share}-{turn}", query, "batch-aligned", SLOTS, cluster.root)
    return replace(job, recovery="partially-active", standby=SLOTS, replication_ratio=share)


def _measured(cluster: BenchmarkCluster, job: Job, share: float, window_s: float) -> Cost:
    """Run a job for a window that begins when it is warm and its copies work; ends the program if a slot is lost."""
    load = load_of_others()
    journal = cluster.start(job)
    begin_ns = poll_until(lambda: _working_ns(journal, share), interval_s=POLL_S, limit_s=START_LIMIT_S)
    if begin_ns is None:
        sys.exit(f"{job.run_id}: no copy works after {START_LIMIT_S:g} s")
    time.sleep(WARM_S + window_s)
    lost = times(journal, "worker-lost")
    cluster.stop(job)  # which loses all slots
    if lost:
        sys.exit(f"{job.run_id}: a slot was lost")
    window = begin_ns + int(WARM_S * NS), begin_ns + int((WARM_S + window_s) * NS)
    copied = cpu_shares(list(events(journal, TESTBED)), window).copies_cpu_share
    if copied is None:
        sys.exit(f"{job.run_id}: nothing was reported of what partitions cost")
    figures = figures_of(job, journal, window, load)
    primaries_us, cores_us = 1e6 / figures.cpu, 1e6 * CORES / figures.wall
    return Cost(figures.wall, 1 / (1 + copied), primaries_us, cores_us - primaries_us, figures.load)


def _working_ns(journal: Path, share: float) -> int | None:
    """When all went on; of a job with copies, when one of them had first processed records."""
    told = events(journal, TESTBED)
    if not share:
        return next((each.at_ns for each in told if isinstance(each, EpochReady)), None)
    costs = (each for each in told if isinstance(each, Costs))
    return next((each.at_ns for each in costs if any(copy.records for copy in each.copies.values())), None)


def _line(share: float, cost: Cost, base: Cost) -> str:
    return (
        f"{share:6.0%} {cost.events_per_s:10,.0f} {cost.events_per_s / base.events_per_s:8.0%} {cost.left:14.0%}"
        f" {cost.primaries_us:30.3f}, {cost.rest_us:8.3f} {cost.load:5.0f}"
    )


if __name__ == "__main__":
    main()
