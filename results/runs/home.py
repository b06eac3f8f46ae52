"""The folders of Aftershock's state and of what is published.

Separate from the run store, so that neither a DAG file nor a shell that completes a word need load pandas.
"""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """$AFTERSHOCK_HOME, or `.aftershock` beside the code."""
    return Path(os.environ.get("AFTERSHOCK_HOME") or Path(__file__).parents[2] / ".aftershock").resolve()


def published_folder() -> Path:
    """$AFTERSHOCK_PUBLISHED, or `published` beside the code."""
    return Path(os.environ.get("AFTERSHOCK_PUBLISHED") or Path(__file__).parents[2] / "published").resolve()
