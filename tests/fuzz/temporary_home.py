"""A run store of a fuzzer's own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "AFTERSHOCK_HOME"


@contextmanager
def temporary_home() -> Iterator[Path]:
    """Within, the run store is the folder `home`, which is not there yet, in the folder that this gives."""
    earlier = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = f"{folder}/home"
        try:
            yield Path(folder)
        finally:
            del os.environ[VARIABLE]
            if earlier is not None:
                os.environ[VARIABLE] = earlier
