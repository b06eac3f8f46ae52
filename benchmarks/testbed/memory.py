"""Whether the memory of slots is bounded: the resident size of each slot's process through a long run.

`.venv/bin/python -m benchmarks.testbed.memory [--query q12] [--protocol uncoordinated] [--minutes 30] [--rate R]`
measures for some seconds how many events a second the machine manages (unless a rate is given), then runs the query at
80 % of that, and prints the size of each slot's process once a minute, how it changes over the second half of the run
(a line through all samples), and a verdict: bounded if by that line a slot gains less than 5 % of its size in half an
hour. Sources that are more than 10 s behind in the second half fail the run: what they do not read takes no memory. The
program ends with 1 unless memory is bounded. The load before it, and how far sources are behind, are printed, too.

`--query reachability` is the cyclic query on a graph that keeps its size. It needs a rate: sources that read as fast as
they can drift apart, and what one has created and the other would have deleted makes the graph larger. The graph grows
for 32,000 events, which must come in the first half of the run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.arguments import above_zero, at_least_one
from benchmarks.machine_load import load_of_others
from benchmarks.one_line_errors import one_line_errors
from benchmarks.testbed.throughput import CYCLE, BenchmarkCluster, cluster_of, entries_of, job_of, measured
from infra.processes import members, usage
from testbed.protocols import PROTOCOLS
from testbed.queries import QUERIES
from testbed.runtime.connectors.sources import Generated
from testbed.runtime.job import Job
from testbed.source_positions import events_read
from workloads.reachability.input import CYCLE as BLOCK
from workloads.reachability.input import STEADY

SHARE, WINDOW_S, SAMPLE_S, SHOWN_EVERY = 0.8, 10.0, 5.0, 12
HORIZON_S, MOST_GAIN, MOST_BEHIND_S = 1800.0, 0.05, 10.0
LEAST_MINUTES = 10.0  # of which the second half is extended to half an hour
GROWING_EVENTS = BLOCK * STEADY.group
MB = 2**20


@one_line_errors()
def main() -> None:
    """Run the job for some minutes below its highest rate, and judge whether its memory grows."""
    given = _arguments()
    load = load_of_others()
    with cluster_of(given.workers) as cluster:
        job = job_of("memory", given.query, given.protocol, given.workers, cluster.root)
        rate = given.rate or SHARE * measured(cluster, replace(job, run_id="rate", store=_store(job)), WINDOW_S).wall
        print(f"{given.query} {given.protocol} at {rate:,.0f} events/s, load {load:.0f}", flush=True)
        job = replace(job, input=replace(job.input, rate=rate, start_ns=time.time_ns()))
        journal = cluster.start(job)
        samples = np.array(list(_samples(cluster, job, journal, given.minutes * 60)))
        cluster.stop(job)
    verdict, is_bounded = judged(samples)
    print(verdict)
    sys.exit(not is_bounded)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--query", choices=[*(each.value for each in QUERIES), CYCLE], default="q12")
    parser.add_argument("--protocol", choices=list(PROTOCOLS), default="uncoordinated")
    parser.add_argument("--workers", type=at_least_one, default=2)
    parser.add_argument("--minutes", type=above_zero, default=30.0, help=f"at least {LEAST_MINUTES:g}")
    parser.add_argument("--rate", type=above_zero, help="events per second, instead of 80 %% of what is measured")
    given = parser.parse_args()
    if given.minutes < LEAST_MINUTES:
        parser.error(f"--minutes: {given.minutes:g} is not usable; allowed: at least {LEAST_MINUTES:g}")
    fewest = 2 * GROWING_EVENTS / (60 * given.minutes)
    if given.query == CYCLE and (given.rate or 0) < fewest:
        parser.error(f"--query {CYCLE} needs a --rate of at least {fewest:.0f}")
    return given


def _store(job: Job) -> str:
    return str(Path(job.store).parent.with_name("rate") / "store")


def _samples(cluster: BenchmarkCluster, job: Job, journal: Path, seconds: float) -> Iterator[list[float]]:
    """Time [s], how far sources are behind [s], and the resident size [MB] of each worker's slot.

    How far behind is known once a minute and at the end, and nan else: finding out takes reading the whole journal.
    """
    hosts = [host for host in cluster.handle.hosts if host != "gateway"]
    begun_s = time.monotonic()
    while (now_s := time.monotonic() - begun_s) < seconds:
        sizes, behind_s = [_slot_mb(cluster, host) for host in hosts], np.nan
        if round(now_s / SAMPLE_S) % SHOWN_EVERY == 0:
            behind_s = _behind_s(job, journal)
            shown = "  ".join(f"{size:7.1f}" for size in sizes)
            print(f"{now_s:6.0f} s  {shown} MB  behind {behind_s:5.1f} s", flush=True)
        yield [now_s, behind_s, *sizes]
        time.sleep(SAMPLE_S - (time.monotonic() - begun_s) % SAMPLE_S)
    yield [now_s, _behind_s(job, journal), *(_slot_mb(cluster, host) for host in hosts)]


def _slot_mb(cluster: BenchmarkCluster, host: str) -> float:
    """The largest of the Python processes of a host; the others are those that Spark forks from.

    Without any the program ends.
    """
    pids = [pid for pid in members(f"{cluster.handle.token}/{host}") if b"pyspark" in _command(pid)]
    if not pids:
        sys.exit(f"{host} has no slot: it was lost; see {cluster.handle.directory(host) / 'logs'}")
    return max(usage([pid]).rss_bytes for pid in pids) / MB


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _behind_s(job: Job, journal: Path) -> float:
    """How much of what is due by now the sources have not read, by the last report; all of it if there is none [s]."""
    reports = entries_of(journal, "progress")
    blocks = events_read(reports[-1]["positions"]) if reports else 0
    read_s = blocks * Generated.block_events(job.input.rate) / job.input.rate
    return (time.time_ns() - job.input.start_ns) / 1e9 - read_s


def judged(samples: np.ndarray) -> tuple[str, bool]:
    """The verdict on samples (as of `_samples`), with its criterion, and whether memory is bounded."""
    later = samples[samples[:, 0] >= samples[-1, 0] / 2]
    gains = []
    for slot, sizes in enumerate(later.T[2:]):
        slope, _ = np.polyfit(later[:, 0], sizes, 1)
        gains.append(slope * HORIZON_S / sizes.mean())
        print(f"slot {slot}: {sizes.mean():.1f} MB, {slope * 60:+.3f} MB a minute, {gains[-1]:+.1%} in half an hour")
    behind_s = np.nanmax(later[:, 1])
    if behind_s > MOST_BEHIND_S:
        return f"failed: sources were {behind_s:.1f} s behind, more than {MOST_BEHIND_S:g} s", False
    is_bounded = max(gains) < MOST_GAIN
    criterion = f"below {MOST_GAIN * 100:g} % in half an hour"
    return f"{'bounded' if is_bounded else 'not bounded'}: {'' if is_bounded else 'not '}{criterion}", is_bounded


if __name__ == "__main__":
    main()
