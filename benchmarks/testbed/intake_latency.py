"""Latency from due time to result: messages in order of arrival against batches cut by content.

`.venv/bin/python -m benchmarks.testbed.intake_latency [--records 1 1024] [--rate 5000] [--seconds 15]` runs NexMark's
Q1 on two slots, which are processes as in `kills`, with results written to files. Each line is one run: protocol,
delivery and records a message, then p50, p99 and the highest latency [ms], of the records that were due in the last
`--seconds`. A file counts as out when it has its name, which is after it has been synced to disk. A run that does not
keep up may have nothing out (nan).
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.runtime.job import Job
from tests.integration.testbed.kills.jobs import job_of
from tests.integration.testbed.kills.slots import Slots
from tests.integration.testbed.kills.watching import Stage, Watch

CASES = (
    ("coordinated", Delivery.PLAIN),
    ("batch-aligned", Delivery.PLAIN),
    ("coordinated", Delivery.EXACTLY_ONCE),
    ("batch-aligned", Delivery.EXACTLY_ONCE),
)
QUERY, SLOTS, INTERVAL_S, BATCH_S, MS = "q1", 2, 2.0, 0.25, 1e6
START_S, WARM_S, LEFT_OUT_S = 60.0, 5.0, 6.0  # output is out at the latest three intervals after it was due


def main() -> None:
    """Run every case, and print a line for each."""
    given = _arguments()
    print("protocol       delivery      records  p50 ms  p99 ms  highest  load", flush=True)
    for records in given.records:
        for protocol, delivery in CASES:
            files = _latencies(protocol, delivery, records, given.rate, given.seconds)
            found = np.concatenate([np.empty(0), *files])
            p50, p99, highest = np.quantile(found, [0.5, 0.99, 1.0]) / MS if found.size else [np.nan] * 3
            figures = f"{records:7} {p50:7.0f} {p99:7.0f} {highest:8.0f} {os.getloadavg()[0]:5.0f}"
            print(f"{protocol:14} {delivery.value:13} {figures}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", nargs="+", type=int, default=[1, 1024], help="records a message")
    parser.add_argument("--rate", type=float, default=5000.0, help="events per second")
    parser.add_argument("--seconds", type=float, default=15.0, help="that are measured")
    return parser.parse_args()


def _latencies(protocol: str, delivery: Delivery, records: int, rate: float, seconds: float) -> Iterator[np.ndarray]:
    """Of each file the latencies of its records [ns], from one run."""
    root = Path(tempfile.mkdtemp(prefix="aftershock-intake-"))
    job = job_of(QUERY, protocol, 1, root, SLOTS, kills=1)
    output = replace(job.output, delivery=delivery)
    job = replace(job, input=replace(job.input, rate=rate), output=output, checkpoint_interval_s=INTERVAL_S)
    job = replace(job, batch_length_s=BATCH_S, limits=PartitionLimits(records_per_message=records))
    rig = Slots(job, root)
    watch = Watch(rig.journal, job.slots)
    try:
        watch.wait_for(lambda: watch.stage is Stage.RUNNING, START_S)
        time.sleep(WARM_S)
        begin_ns = time.time_ns()
        time.sleep(seconds + LEFT_OUT_S)
        end_ns = begin_ns + round(seconds * 1e9)
    finally:
        watch.close()
        rig.close()
    yield from _in_files(job, begin_ns, end_ns)
    shutil.rmtree(root)  # kept where something failed


def _in_files(job: Job, begin_ns: int, end_ns: int) -> Iterator[np.ndarray]:
    for path in Path(job.output.folder).rglob("[!.]*.arrow"):
        due_ns = pa.ipc.open_stream(path.read_bytes()).read_all().column("at_ns").to_numpy()
        yield path.stat().st_mtime_ns - due_ns[(due_ns >= begin_ns) & (due_ns < end_ns)]


if __name__ == "__main__":
    main()
