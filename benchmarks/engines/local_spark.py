"""A Spark session whose cost can be measured: driver and executor are one JVM, with the query driver's state store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
from pyspark.sql import SparkSession

from spark_jobs.streaming.job import STATE_SETTINGS
from tests.integration.local_spark import session_of

HEAP, MOST_REPORTS = "2g", 1_000_000


@contextmanager
def local_spark(cores: int, partitions: int, jvm_options: str = "") -> Iterator[SparkSession]:
    """A session with `cores` cores and `partitions` partitions of each state store; it ends with the block."""
    with session_of("aftershock-benchmark", cores, settings_of(partitions, jvm_options)) as session:
        yield session


def settings_of(partitions: int, jvm_options: str = "") -> dict[str, str]:
    """Spark's settings of such a session."""
    return {
        "spark.driver.memory": HEAP,
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.streaming.numRecentProgressUpdates": str(MOST_REPORTS),  # by default the last 100 micro-batches
        "spark.log.level": "ERROR",
        **STATE_SETTINGS,
        **({"spark.driver.extraJavaOptions": jvm_options} if jvm_options else {}),
    }


def cpu_s(spark: SparkSession) -> float:
    """CPU time of the session's JVM so far [s]; its garbage collector and its compilers are in it."""
    context: Any = spark.sparkContext  # its gateway to the JVM has no types
    times = psutil.Process(context._gateway.proc.pid).cpu_times()
    return float(times.user + times.system)


def versions(spark: SparkSession) -> dict[str, str]:
    """What runs: Spark, and the JVM."""
    context: Any = spark.sparkContext
    jvm = context._jvm.java.lang.System
    return {"Spark": spark.version, "JVM": f"{jvm.getProperty('java.vm.name')} {jvm.getProperty('java.vm.version')}"}
