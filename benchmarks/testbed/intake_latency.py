"""Latency from due time to result: messages in order of arrival against batches cut by content.

`.venv/bin/python -m benchmarks.testbed.intake_latency [--records 1 1024] [--rate 5000] [--seconds 15] [--protocols
coordinated batch-aligned] [--deliveries plain exactly-once] [--spare-lines 1]` runs NexMark's Q1 on two slots, which
are processes as in `kills`, with results written to files. Each line is one run: protocol, delivery and records a
message, then p50, p99 and the highest latency [ms] of the records that were due in `--seconds`, the share of these
records whose results are out, and the load before the run.

In order of arrival and without waiting for checkpoints, for example at half of a rate that the machine sustains; and
exactly once, waiting for one checkpoint of `coordinated` and not for a second one:

    .venv/bin/python -m benchmarks.testbed.intake_latency --records 1024 --rate 20000 --protocols coordinated \\
        --deliveries plain
    .venv/bin/python -m benchmarks.testbed.intake_latency --records 1024 --protocols coordinated \\
        --deliveries exactly-once --spare-lines 0

A result is out when its file has its name, which is after the file has been synced to disk. Where less than 99 % is
out, the run has not kept up. Then the latencies are nan: those that are known would depend on how long the run was.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.arguments import above_zero, at_least, at_least_one
from benchmarks.machine_load import load_of_others
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from benchmarks.testbed.result_files import out_ns
from benchmarks.testbed.watched_slots import watched_slots
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.runtime.job import Job
from tests.integration.testbed.kills.jobs import job_of
from tests.integration.testbed.kills.watching import Stage
from workloads.nexmark.stream import CYCLE, FIRST_BID
from workloads.schedule import NS_PER_MS, Schedule

QUERY, SLOTS, INTERVAL_S, BATCH_S, MS = "q1", 2, 2.0, 0.25, 1e6
START_S, WARM_S, LEFT_OUT_S = 60.0, 5.0, 6.0  # output is out at the latest three intervals after it was due
LEAST_OUT = 0.99  # of the records that were due; with less, the 99th percentile is not known


class Run(NamedTuple):
    """What one run has shown: the latencies of results that are out [ns], of how many records, and the load before."""

    latencies_ns: np.ndarray
    due: int
    load: float

    @property
    def out(self) -> float:
        """The share of records whose results are out."""
        return self.latencies_ns.size / self.due

    def line(self) -> str:
        """Its latencies, the share that is out, and the load."""
        quantiles = [0.5, 0.99, 1.0]
        known = self.out >= LEAST_OUT
        p50, p99, highest = np.quantile(self.latencies_ns, quantiles) / MS if known else [np.nan] * len(quantiles)
        return f"{p50:7.0f} {p99:7.0f} {highest:8.0f} {self.out:6.1%} {self.load:5.0f}"


@one_line_errors()
def main() -> None:
    """Run every case, and print a line for each."""
    given = arguments(sys.argv[1:])
    end_by_sigterm()  # so that the slots end
    print("protocol       delivery      records  p50 ms  p99 ms  highest    out  load", flush=True)
    for records in given.records:
        for delivery, protocol in product(given.deliveries, given.protocols):
            root = Path(tempfile.mkdtemp(prefix="aftershock-intake-"))
            run = _measured(case_of(given, protocol, Delivery(delivery), records, root), root, given.seconds)
            print(f"{protocol:14} {delivery:13} {records:7} {run.line()}", flush=True)


def arguments(words: list[str]) -> argparse.Namespace:
    """What is to be run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", nargs="+", type=at_least_one, default=[1, 1024], help="records a message")
    parser.add_argument("--rate", type=above_zero, default=5000.0, help="events per second")
    parser.add_argument("--seconds", type=above_zero, default=15.0, help="that are measured")
    parser.add_argument("--protocols", nargs="+", choices=list(PROTOCOLS), default=["coordinated", "batch-aligned"])
    deliveries = [Delivery.PLAIN.value, Delivery.EXACTLY_ONCE.value]
    parser.add_argument("--deliveries", nargs="+", choices=deliveries, default=deliveries)
    parser.add_argument("--spare-lines", type=at_least(0), default=1, help="older lines of checkpoints that are kept")
    return parser.parse_args(words)


def case_of(given: argparse.Namespace, protocol: str, delivery: Delivery, records: int, root: Path) -> Job:
    """The job of one run below `root`; raises `BadInput` for protocol `none` with exactly-once delivery."""
    job = job_of(QUERY, protocol, 1, root, SLOTS, kills=1)
    return replace(
        job,
        input=replace(job.input, rate=given.rate),
        output=replace(job.output, delivery=delivery),
        checkpoint_interval_s=INTERVAL_S,
        batch_length_s=BATCH_S,
        spare_lines=given.spare_lines,
        limits=PartitionLimits(records_per_message=records),
    )


def _measured(job: Job, root: Path, seconds: float) -> Run:
    load = load_of_others()
    with watched_slots(job, root) as (_, watch):
        watch.wait_for(lambda: watch.stage is Stage.RUNNING, START_S)
        time.sleep(WARM_S)
        begin_ns = time.time_ns()
        time.sleep(seconds + LEFT_OUT_S)
        end_ns = begin_ns + round(seconds * 1e9)
    latencies_ns = np.concatenate([np.empty(0), *in_files(job, begin_ns, end_ns)])
    shutil.rmtree(root)  # kept where something failed
    return Run(latencies_ns, records_due(job, begin_ns, end_ns), load)


def records_due(job: Job, begin_ns: int, end_ns: int) -> int:
    """How many records that Q1 reads, so how many results it has, are due from `begin_ns` to before `end_ns`."""
    schedule = Schedule(job.input.start_ns, job.input.rate)
    positions = np.arange(schedule.due_count(end_ns) + 1, dtype=np.int64)
    due_ns = schedule.all_due_ms(positions) * NS_PER_MS
    are_due = (positions % CYCLE >= FIRST_BID) & (due_ns >= begin_ns) & (due_ns < end_ns)
    return int(np.count_nonzero(are_due))


def in_files(job: Job, begin_ns: int, end_ns: int) -> Iterator[np.ndarray]:
    """The latencies of the records in each file [ns]; of those that are due from `begin_ns` to before `end_ns`."""
    for path in Path(job.output.folder).rglob("[!.]*.arrow"):
        due_ns = pa.ipc.open_stream(path.read_bytes()).read_all().column("at_ns").to_numpy()
        yield out_ns(path) - due_ns[(due_ns >= begin_ns) & (due_ns < end_ns)]


if __name__ == "__main__":
    main()
