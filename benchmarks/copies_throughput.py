"""What active copies cost in throughput, beside what they cost in CPU time.

`.venv/bin/python -m benchmarks.copies_throughput [--query q12] [--shares 0 0.5 1] [--repeats N] [--window S]` makes one
local cluster with two slots and two that stand by, and runs a saturating source on it, by turns with copies of a share
of the partitions. The slots together keep both cores busy. So if copies cost CPU time only, throughput falls to the
share of CPU time that they leave to primaries. Prints that share beside the throughput by that without copies: of each
run, and the medians of several.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from statistics import median
from typing import NamedTuple

from benchmarks.dataflow_throughput import (
    START_LIMIT_S,
    WARM_S,
    WORKLOADS,
    BenchmarkCluster,
    cluster_of,
    figures_of,
    job_of,
    times,
)
from journal.events.testbed import TESTBED
from journal.reader import events
from spark_jobs.tables.copies import cpu_shares
from testbed.runtime.job import Job

SLOTS, NS = 2, 10**9
HEAD = "copies   events/s  by none  CPU time left  load"


class Cost(NamedTuple):
    """Of one window: events per second, and the share of CPU time that is not the copies'."""

    events_per_s: float
    left: float


def main() -> None:
    """Measure every share of copies by turns."""
    given = _arguments()
    found: dict[float, list[Cost]] = {share: [] for share in given.shares}
    print(HEAD, flush=True)
    with cluster_of(2 * SLOTS) as cluster:
        for turn in range(given.repeats):
            for share, costs in found.items():
                costs.append(_measured(cluster, _job(given.query, share, turn, cluster), share, given.window))
                print(_line(share, costs[-1], found[given.shares[0]][turn]), flush=True)
    medians = {share: Cost(*map(median, zip(*costs, strict=True))) for share, costs in found.items()}
    print(f"medians of {given.repeats}:")
    for share, cost in medians.items():
        print(_line(share, cost, medians[given.shares[0]]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--query", choices=list(WORKLOADS), default="q12")
    parser.add_argument("--shares", nargs="+", type=float, default=[0.0, 0.5, 1.0], help="of the partitions")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each")
    parser.add_argument("--window", type=float, default=20.0, help="seconds that are measured")
    return parser.parse_args()


def _job(query: str, share: float, turn: int, cluster: BenchmarkCluster) -> Job:
    job = job_of(f"{query}-{share}-{turn}", query, "batch-aligned", SLOTS, cluster.root)
    return replace(job, recovery="partially-active", standby=SLOTS, replication_ratio=share)


def _measured(cluster: BenchmarkCluster, job: Job, share: float, window_s: float) -> Cost:
    """Run a job for a window that begins when it is warm and has its copies."""
    journal = cluster.start(job)
    deadline_s = time.monotonic() + START_LIMIT_S
    while share and not times(journal, "copied"):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{job.run_id} has no copies")
        time.sleep(0.5)
    time.sleep(WARM_S + window_s)
    cluster.stop(job)
    begin_ns = times(journal, "copied" if share else "ready")[0] + int(WARM_S * NS)
    window = begin_ns, begin_ns + int(window_s * NS)
    copied = cpu_shares(list(events(journal, TESTBED)), window).copies_cpu_share or 0.0
    return Cost(figures_of(job, journal, window).wall, 1 / (1 + copied))


def _line(share: float, cost: Cost, base: Cost) -> str:
    return (
        f"{share:6.0%} {cost.events_per_s:10,.0f} {cost.events_per_s / base.events_per_s:8.0%} {cost.left:14.0%}"
        f" {os.getloadavg()[0]:5.0f}"
    )


if __name__ == "__main__":
    main()
