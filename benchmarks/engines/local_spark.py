"""A Spark session whose cost can be measured: driver and executor are one JVM, with the query driver's state store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
from pyspark.sql import SparkSession

from infra.services.jars import ensure_jars
from infra.services.jvm import find_java
from spark_jobs.streaming.job import STATE_SETTINGS

HEAP = "2g"
LOCAL = "127.0.0.1"


@contextmanager
def local_spark(cores: int, partitions: int, jvm_options: str = "") -> Iterator[SparkSession]:
    """A session on so many cores, with so many partitions of each state store; it ends with the block."""
    settings = {
        "spark.driver.host": LOCAL,
        "spark.driver.bindAddress": LOCAL,
        "spark.driver.memory": HEAP,
        "spark.driver.extraClassPath": ":".join(map(str, ensure_jars().connector)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
        **STATE_SETTINGS,
        **({"spark.driver.extraJavaOptions": jvm_options} if jvm_options else {}),
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("aftershock-benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    os.environ |= {"JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def cpu_s(spark: SparkSession) -> float:
    """CPU time of the session's JVM so far [s]; its garbage collector and its compilers are in it."""
    times = psutil.Process(spark.sparkContext._gateway.proc.pid).cpu_times()
    return float(times.user + times.system)


def versions(spark: SparkSession) -> dict[str, str]:
    """What runs: Spark, and the JVM."""
    jvm = spark.sparkContext._jvm.java.lang.System
    return {"Spark": spark.version, "JVM": f"{jvm.getProperty('java.vm.name')} {jvm.getProperty('java.vm.version')}"}
