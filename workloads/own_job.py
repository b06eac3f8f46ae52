"""The oracle of an own job: a Python file of its owner, with two functions.

    exact(records)    what the job should write, from its input: a batch DataFrame with topic, partition, offset,
                      timestamp, key and value of every record that it has read
    results(output)   what it wrote, from its output topic: a batch DataFrame with partition, offset, timestamp, key
                      and value of every record

Both give results (`workloads.results`): a window in milliseconds, a key, and a value as text, which are compared.
"""

from __future__ import annotations

import runpy
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.types import TimestampNTZType, TimestampType

from experiments.errors import BadInput
from workloads.results import COLUMNS

ORACLE = "oracle.py"  # the copy in the raw logs of a run
FUNCTIONS = ("exact", "results")
MOMENTS = (TimestampType, TimestampNTZType)  # as numbers they would be seconds


def applied(oracle: Path, function: str, records: DataFrame) -> DataFrame:
    """What a function of an oracle's file makes of records; raises `BadInput` for one that is missing or amiss."""
    functions = runpy.run_path(str(oracle))
    if not all(callable(functions.get(name)) for name in FUNCTIONS):
        raise BadInput("workload.oracle", str(oracle), f"a file with the functions {' and '.join(FUNCTIONS)}")
    found: DataFrame = functions[function](records)
    if missing := set(COLUMNS) - set(found.columns):
        raise BadInput("workload.oracle", sorted(missing), f"{function}() with the columns {', '.join(COLUMNS)}")
    if moments := [name for name in COLUMNS[:2] if isinstance(found.schema[name].dataType, MOMENTS)]:
        allowed = f"{function}() with milliseconds in {' and '.join(moments)}: F.unix_millis makes them of timestamps"
        raise BadInput("workload.oracle", moments, allowed)
    start, end = (found[name].cast("long").alias(name) for name in COLUMNS[:2])
    return found.select(start, end, *(found[name].cast("string").alias(name) for name in COLUMNS[2:]))
