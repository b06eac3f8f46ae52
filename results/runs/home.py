"""The folder of Aftershock's state. Separate from the run store, so that a DAG file need not load pandas."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """$AFTERSHOCK_HOME, or `.aftershock` beside the code."""
    return Path(os.environ.get("AFTERSHOCK_HOME") or Path(__file__).parents[2] / ".aftershock").resolve()
