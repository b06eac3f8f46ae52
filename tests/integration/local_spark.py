"""A Spark session in this process: driver and executor are one JVM."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from pyspark.sql import SparkSession

from infra.services.jars import ensure_jars
from infra.services.jvm import find_java

LOCAL = "127.0.0.1"


@contextmanager
def session_of(name: str, cores: int, settings: dict[str, str]) -> Iterator[SparkSession]:
    """A session on `cores` cores, with the Kafka connector and these settings in addition; it ends with the block."""
    common = {
        "spark.driver.host": LOCAL,
        "spark.driver.bindAddress": LOCAL,
        "spark.driver.extraClassPath": ":".join(map(str, ensure_jars().connector)),
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in (common | settings).items():
        builder = builder.config(key, value)
    with patch.dict(os.environ, {"JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}):
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()
