"""A run store of a fuzzer's own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLES = ("AFTERSHOCK_HOME", "AFTERSHOCK_PUBLISHED")


@contextmanager
def temporary_home() -> Iterator[Path]:
    """Within, the run store is the folder `home`, which is not there yet, in the folder that this gives.

    Nothing is published there.
    """
    earlier = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= dict(zip(VARIABLES, (f"{folder}/home", f"{folder}/published"), strict=True))
        try:
            yield Path(folder)
        finally:
            for name in VARIABLES:
                del os.environ[name]
            os.environ |= earlier
