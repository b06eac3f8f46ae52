"""Load Great Expectations safely beside PySpark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

SPARK_CONNECT = "pyspark.sql.connect"


@contextmanager
def spark_connect_hidden() -> Iterator[None]:
    """Make Spark Connect look absent while the body imports.

    Great Expectations imports it when it can. That import takes a process whose main module is no file (`python -c`, a
    worker of pytest-xdist) for a doctest, and ends it with exit code 0 unless every package of Spark Connect is there.
    """
    if SPARK_CONNECT in sys.modules:
        yield
        return
    sys.modules[SPARK_CONNECT] = None  # type: ignore[assignment]  # the import system's mark for "not importable"
    try:
        yield
    finally:
        del sys.modules[SPARK_CONNECT]
