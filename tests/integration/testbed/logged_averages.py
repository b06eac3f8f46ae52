"""Averages prices with an output log, in a process that may be killed at any moment.

Each row that is safe in the log is written to a pipe with its number. Another process like it goes on from the log.
"""

import os
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TextIO

import numpy as np
import pyarrow as pa

from testbed.operators.count_windows import CountWindows
from testbed.output_log.log import OutputLog
from testbed.output_log.logged import LoggedOperator
from testbed.output_log.policies import Targets
from testbed.output_log.reading import LogReader
from testbed.stores.store import DirectoryStore

RECORDS, BATCH, NAME, KEY = 60_000, 100, "average.0", b"k" * 32
SCHEMA = pa.schema([("item", pa.int64()), ("price", pa.int64()), ("at_ns", pa.int64())])


def prices() -> pa.RecordBatch:
    random = np.random.default_rng(1)
    columns = random.zipf(1.3, RECORDS) % 1000, random.integers(1, 1000, RECORDS), np.arange(RECORDS)
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=SCHEMA)


def average() -> tuple[CountWindows, pa.Schema]:
    operator = CountWindows("item", "price", 7, ("at_ns",))
    rows = operator.schema(SCHEMA)
    operator.open()
    return operator, rows


def write_averages(root: Path, delivered: int, pipe: Connection) -> None:
    """`delivered`: how many rows other processes have written to their end."""
    with os.fdopen(os.dup(pipe.fileno()), "w", encoding="utf-8") as out:
        _write(root, delivered, out)


def _write(root: Path, delivered: int, out: TextIO) -> None:
    operator, rows = average()
    store, records = DirectoryStore(root, KEY), prices()
    logged = LoggedOperator(operator, OutputLog(store, NAME), Targets(3000, 5000))
    found = logged.restore(LogReader(store, NAME, rows), delivered)
    print("restored", found.position - found.replay_after, found.extent, len(found.damaged), file=out, flush=True)
    number = delivered
    for position in range(found.replay_after, RECORDS, BATCH):
        logged.process(0, records.slice(position, BATCH))
        logged.check(lambda: True)
        for batch in logged.commit():
            for row in batch.to_pylist():
                number += 1
                print(number, *row.values(), file=out)
        out.flush()
        logged.log.trim(delivered)
