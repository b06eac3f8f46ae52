"""What the JVM's second JIT compiler costs and saves in the batch job of a run, by number of records.

    .venv/bin/python -m benchmarks.engines.batch_compilers [--query q1] [--records 100000 500000 1500000]

Each row is a JVM of its own on all cores. It computes the exact results of NexMark's events and writes them, as the
job does in step *collect*, but reads the events from a file instead of Kafka. Prints seconds by the clock
and of CPU time, from the start of the JVM until the results are written, with the first compiler only and with both.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.arguments import at_least_one
from benchmarks.engines.local_spark import cpu_s, local_spark
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from experiments.workloads.base import INPUT
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from infra.services import spark
from workloads.inputs import records
from workloads.queries import oracle
from workloads.schedule import Schedule

PARTITIONS, RATE = 2, 20_000.0
SCHEDULE = Schedule(1_700_000_000 * 10**9, RATE, PARTITIONS)
AT_ONCE = 50_000  # events that are made together
COLUMNS = pa.schema([
    ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("timestamp", pa.timestamp("ms", "UTC")),
    ("value", pa.binary()),
])  # fmt: skip
COMPILERS = {"the first": spark.MOSTLY_STARTING, "both": spark.COLLECTOR}


@one_line_errors()
def main() -> None:
    """Measure all rows, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--query", choices=[each.value for each in NexmarkQuery], default=NexmarkQuery.Q1.value)
    parser.add_argument("--records", type=at_least_one, nargs="+", default=[100_000, 500_000, 1_500_000])
    given = parser.parse_args()
    end_by_sigterm()  # so that the JVM ends
    spec = NexmarkSpec(query=NexmarkQuery(given.query))
    print("  records  compilers  by the clock [s]  CPU time [s]", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for count in given.records:
            events = Path(folder) / f"{count}.parquet"
            _make(events, spec, count)
            for name, options in COMPILERS.items():
                with get_context("spawn").Pool(1) as process:  # of its own, since a process keeps its JVM
                    took_s, busy_s = process.apply(_measured, (events, spec, options))
                print(f"{count:9,}  {name:9}  {took_s:16.1f}  {busy_s:12.1f}", flush=True)


def _make(path: Path, spec: NexmarkSpec, count: int) -> None:
    """Write events with the columns of Spark's Kafka source."""
    values_of = records(spec, SCHEDULE)
    with pq.ParquetWriter(path, COLUMNS) as file:
        for start in range(0, count, AT_ONCE):
            values = values_of(start, min(start + AT_ONCE, count))
            file.write_table(_table(start, values))


def _table(start: int, values: Sequence[bytes]) -> pa.Table:
    positions = np.arange(start, start + len(values))
    offsets, partitions = np.divmod(positions, PARTITIONS)
    due_ms = SCHEDULE.all_due_ms(positions)
    return pa.table([[INPUT] * len(values), partitions, offsets, due_ms, values], schema=COLUMNS)


def _measured(events: Path, spec: NexmarkSpec, options: str) -> tuple[float, float]:
    """Seconds by the clock, and of CPU time."""
    begun_s = time.monotonic()
    with local_spark(os.cpu_count() or 1, PARTITIONS, options) as session:
        results = oracle(session.read.parquet(str(events)), spec)
        results.write.parquet(str(events.with_suffix(f".{time.monotonic_ns()}")))
        return time.monotonic() - begun_s, cpu_s(session)


if __name__ == "__main__":
    main()
